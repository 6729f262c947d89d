"""``hookloop train``: carry out a recipe, or go on with a run."""

from __future__ import annotations

import gc
import logging
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from hookloop.cli.changes import Change, changes_between, refuse_changes
from hookloop.cli.run_folder import RunConfig, RunFolder, find_run, new_run
from hookloop.cli.run_hooks import Display, run_hooks
from hookloop.cli.workloads import Job, Result, build_job, read_settings, settle
from hookloop.config.overrides import apply_overrides
from hookloop.config.settings import RunSettings
from hookloop.errors import ConfigError
from hookloop.recipes import find_recipe, split_arguments
from hookloop.storage.atomic import write_json
from hookloop.storage.lock import RunLock


def train(
    *recipe: str,
    run: str | None = None,
    runs_dir: Path = Path("runs"),
    seed: int | None = None,
    device: Literal["auto", "cpu"] = "auto",
    threads: int | None = None,
    display: Display = "auto",
    resume: str | None = None,
    checkpoint: str = "latest",
    force: bool = False,
    dry_run: bool = False,
) -> int:
    """Train a recipe, or go on with a run.

    Args:
        recipe: The recipe's name ('hookloop recipes'), then settings to change as NAME=VALUE ('hookloop config').
        run: The run's name; made of the recipe and the time by default.
        runs_dir: The folder of all runs.
        seed: The root of all randomness; 0 by default.
        device: Where to train; the CPU is what there is so far.
        threads: Threads of one tensor operation; more than one, the default, pays for large networks only.
        display: How to show progress; 'auto' is live on a terminal and plain lines elsewhere.
        resume: Go on with this run, given its name or path, as if it had never stopped.
        checkpoint: What to go on from: latest, best, final, a step, an epoch such as epoch5, a path or a URI.
        force: Go on although a changed setting makes it another run.
        dry_run: Show the settings, the hooks and the files, and stop.
    """
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    logging.getLogger("hookloop.hooks.checkpoint").setLevel(logging.INFO)  # what a run goes on from
    signal.signal(signal.SIGTERM, _leave)
    if resume is None:
        name, overrides = split_arguments(recipe)
        settings = apply_overrides(find_recipe(name), overrides, what=f"the recipe {name!r}")
        settings = settle(settings, runs_dir)
        folder = new_run(runs_dir, run or f"{name}-{datetime.now(UTC):%Y%m%d-%H%M%S}")
        config = RunConfig(name, seed or 0, threads or 1, settings.model_dump(mode="json"), settings.workload)
        return _start(folder, config, settings, display, dry_run=dry_run)
    if seed is not None or run is not None:
        raise ConfigError("--seed and --run belong to a new run; a resumed one keeps its own.")
    folder = find_run(runs_dir, resume)
    config, settings, changes = _changed(folder, recipe, threads, is_forced=force)
    return _start(folder, config, settings, display, dry_run=dry_run, resume=checkpoint, changes=changes)


def _changed(
    folder: RunFolder, words: tuple[str, ...], threads: int | None, *, is_forced: bool
) -> tuple[RunConfig, RunSettings, list[Change]]:
    """Return a run as it was, with the settings that are to change, and those changes."""
    if words and "=" not in words[0]:
        raise ConfigError(f"--resume goes on with the recipe of the run; leave {words[0]!r} out.")
    config = folder.read_config()
    settings = read_settings(config.workload, config.settings)
    settings = apply_overrides(settings, words, what=f"the run {folder.name!r}")
    changed = settings.model_dump(mode="json")
    changes = changes_between(config.settings, changed)
    refuse_changes(changes, is_forced=is_forced)
    config = replace(config, settings=changed, threads=config.threads if threads is None else threads)
    return config, settings, changes


def _start(
    folder: RunFolder,
    config: RunConfig,
    settings: RunSettings,
    display: Display,
    *,
    dry_run: bool,
    resume: str | None = None,
    changes: list[Change] | None = None,
) -> int:
    changes = changes or []
    for change in changes:
        say(f"changed  {change}")
    if dry_run:
        _show_plan(settings, _job(folder, config, settings, display, resume=resume, lock=None), folder)
        return 0
    with RunLock(folder.path) as lock:
        if resume is None:
            folder.require_new()  # again: another process may have begun and ended it before this one had the lock
        folder.sweep()
        job = _job(folder, config, settings, display, resume=resume, lock=lock)
        if resume is None:
            folder.write_config(config)
        # Also without changes: what a checkpoint holds should not tell of how often the run was resumed.
        job.hooks.add(_Changes(folder, config, changes), name="changes")
        result = job.train()
        _write_outcome(folder, result)
    _say_goodbye(folder, config, job, result)
    return result.loop.exit_code


class _Changes:
    """Lets a run end where its new settings say, and writes down from which step on they hold."""

    def __init__(self, folder: RunFolder, config: RunConfig, changes: list[Change]) -> None:
        self._folder, self._config, self._changes = folder, config, changes

    def on_training_start(self, ctx: Any) -> None:
        """Act once the state is restored."""
        restored = ctx.services["checkpoints"].restored
        if restored is not None and restored.manifest.config_sha256 != self._config.sha256:
            ctx.state.stop = None  # it was asked for under other settings; whoever wants it asks again
        if not self._changes:
            return
        clocks = ctx.state.clocks
        at = {"env_steps": clocks.env_steps, "optimizer_steps": clocks.optimizer_steps}
        noted = [{**asdict(change), **at} for change in self._changes]
        self._folder.write_config(replace(self._config, changes=[*self._config.changes, *noted]))


def _job(
    folder: RunFolder,
    config: RunConfig,
    settings: RunSettings,
    display: Display,
    *,
    resume: str | None,
    lock: RunLock | None,
) -> Job:
    # Here and not above: torch takes a second to import, which a wrong argument should not cost.
    with _kept_to_the_end():
        import torch

        from hookloop.core import derive_seed
        from hookloop.core.global_random import seed_global_random

        hooks = run_hooks(folder, config, settings, display, resume=resume, lock=lock)
    torch.set_num_threads(config.threads)
    seed_global_random(derive_seed(config.seed, "global"))  # for hooks of users, which may draw from them
    job = build_job(settings, hooks=hooks, seed=config.seed)
    job.state.run_id = config.run_id
    return job


@contextmanager
def _kept_to_the_end() -> Generator[None]:
    """Spare the garbage collector what is made in this block."""
    # Torch's import makes 165,000 objects that live to the end. The collector would search them again and
    # again while they grow in number, and twice more when the process ends: a quarter of torch's whole cost.
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _show_plan(settings: RunSettings, job: Job, folder: RunFolder) -> None:
    say(settings.model_dump_json(indent=2))
    say(f"hooks, in order: {', '.join(job.hooks.order()) or 'none'}")
    say(f"parameters: {sum(each.numel() for each in job.model.parameters())}")
    kept = ("config.json", "metrics.jsonl")
    files = (*(folder.path / name for name in kept), folder.stats_file, folder.heartbeat_file, folder.result_file)
    say(f"files: {', '.join(map(str, files))}, {folder.checkpoints}/")


def _write_outcome(folder: RunFolder, result: Any) -> None:
    write_json(
        folder.result_file, {each.name: getattr(result, each.name) for each in fields(result) if each.name != "loop"}
    )


def _say_goodbye(folder: RunFolder, config: RunConfig, job: Job, result: Result) -> None:
    why = f" ({result.loop.stop.reason})" if result.loop.stop is not None else ""
    say(f"{result.outcome}{why}")
    say(f"  reached  {job.in_words(result)}")
    say(f"  where    {folder.path}")
    if result.outcome == "interrupted":
        say(f"  go on    hookloop train --resume {folder.path}")
    else:
        say(f"  again    hookloop train {config.recipe} --seed {config.seed + 1}")
    say(f"  look     hookloop runs show {folder.path}")
    for hook, failures in job.state.failures.items():
        say(f"  failed   hook {hook}: {failures.count} times, last: {failures.last_error}")


def _leave(number: int, _frame: object) -> None:
    """Leave on SIGTERM before training takes the signals over: there is nothing to save yet."""
    sys.exit(128 + number)


def say(line: str) -> None:
    """Write one line of result."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
