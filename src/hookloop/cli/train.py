"""``hookloop train``: carry out a recipe, or go on with a run."""

from __future__ import annotations

import gc
import hashlib
import logging
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hookloop.cli.changes import Change, changes_between, refuse_changes
from hookloop.cli.learners import learners, require_as_many
from hookloop.cli.run_hooks import Display, resolved, run_hooks
from hookloop.cli.workloads import Job, Result, build_job, read_settings, settle
from hookloop.config.overrides import apply_overrides
from hookloop.config.settings import RunSettings
from hookloop.core.agreement import require_same
from hookloop.errors import ConfigError
from hookloop.recipes import find_recipe, split_arguments
from hookloop.runs.folder import RunConfig, RunFolder, find_run, new_run
from hookloop.storage.atomic import write_json
from hookloop.storage.lock import RunLock

if TYPE_CHECKING:
    from hookloop.core import Ranks


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
    command = {"recipe": recipe, "run": run, "seed": seed, "threads": threads, "resume": resume, "force": force}
    with learners({**command, "checkpoint": checkpoint, "dry run": dry_run}) as ranks:
        if ranks.rank:
            return 0 if dry_run else _follow(ranks)
        if resume is None:
            plan = _new(recipe, run, runs_dir, seed, threads, ranks)
        else:
            if seed is not None or run is not None:
                raise ConfigError("--seed and --run belong to a new run; a resumed one keeps its own.")
            plan = _changed(find_run(runs_dir, resume), recipe, threads, is_forced=force, checkpoint=checkpoint)
            require_as_many(plan.config.learners, ranks)
        return _start(plan, resolved(display), ranks, dry_run=dry_run)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What to train, and what to go on from."""

    folder: RunFolder
    config: RunConfig
    settings: RunSettings
    resume: str | None = None
    changes: list[Change] = field(default_factory=list[Change])


def _new(
    words: tuple[str, ...], run: str | None, runs_dir: Path, seed: int | None, threads: int | None, ranks: Ranks
) -> _Plan:
    """Return a run that does not exist yet."""
    name, overrides = split_arguments(words)
    settings = apply_overrides(find_recipe(name), overrides, what=f"the recipe {name!r}")
    settings = settle(settings, runs_dir)
    folder = new_run(runs_dir, run or f"{name}-{datetime.now(UTC):%Y%m%d-%H%M%S}")
    kept = settings.model_dump(mode="json")
    return _Plan(folder, RunConfig(name, seed or 0, threads or 1, kept, settings.workload, ranks.world_size), settings)


def _changed(
    folder: RunFolder, words: tuple[str, ...], threads: int | None, *, is_forced: bool, checkpoint: str
) -> _Plan:
    """Return a run as it was, with the settings that are to change, and those changes."""
    if words and "=" not in words[0]:
        raise ConfigError(f"--resume goes on with the recipe of the run; leave {words[0]!r} out.")
    config = folder.read_config()
    before = read_settings(config.workload, config.settings)
    settings = apply_overrides(before, words, what=f"the run {folder.name!r}")
    # A setting that the run did not have yet has its default: that is no change, and what was written stays as it is.
    changes = changes_between(before.model_dump(mode="json"), settings.model_dump(mode="json"))
    refuse_changes(changes, is_forced=is_forced)
    kept = settings.model_dump(mode="json") if changes else config.settings
    config = replace(config, settings=kept, threads=config.threads if threads is None else threads)
    return _Plan(folder, config, settings, checkpoint, changes)


def _start(plan: _Plan, display: Display, ranks: Ranks, *, dry_run: bool) -> int:
    folder, config = plan.folder, plan.config
    for change in plan.changes:
        say(f"changed  {change}")
    if dry_run:
        _show_plan(plan.settings, _job(plan, display, ranks, lock=None), folder)
        return 0
    with RunLock(folder.path) as lock:
        if plan.resume is None:
            folder.require_new()  # again: another process may have begun and ended it before this one had the lock
        folder.sweep()
        job = _job(plan, display, ranks, lock=lock)
        if plan.resume is None:
            folder.write_config(config)
        ranks.broadcast({"folder": str(folder.path), **asdict(config), "resume": plan.resume, "display": display})
        result = _train(plan, job, ranks)
        _write_outcome(folder, result)
    _say_goodbye(folder, config, job, result)
    return result.loop.exit_code


def _follow(ranks: Ranks) -> int:
    """Train what main trains, and leave files and words to it."""
    logging.getLogger().setLevel(logging.ERROR)
    told: dict[str, Any] = dict(ranks.broadcast({}))
    folder, resume, display = RunFolder(Path(told.pop("folder"))), told.pop("resume"), told.pop("display")
    config = RunConfig(**told)
    plan = _Plan(folder, config, read_settings(config.workload, config.settings), resume)
    return _train(plan, _job(plan, display, ranks, lock=None), ranks).loop.exit_code


def _train(plan: _Plan, job: Job, ranks: Ranks) -> Result:
    # Also without changes: what a checkpoint holds should not tell of how often the run was resumed.
    job.hooks.add(_Changes(plan.folder, plan.config, plan.changes), name="changes")
    if ranks.world_size > 1:
        require_same(ranks, {"first weights": _weights_sha256(job)})
    return job.train()


class _Changes:
    """Lets a run end where its new settings say, and writes down from which step on they hold."""

    ranks = "all"

    def __init__(self, folder: RunFolder, config: RunConfig, changes: list[Change]) -> None:
        self._folder, self._config, self._changes = folder, config, changes

    def on_training_start(self, ctx: Any) -> None:
        """Act once the state is restored."""
        checkpoints = ctx.services.get("checkpoints")
        restored = None if checkpoints is None else checkpoints.restored
        is_changed = restored is not None and restored.manifest.config_sha256 != self._config.sha256
        if ctx.loop.hooks.ranks.broadcast(is_changed):
            ctx.state.stop = None  # it was asked for under other settings; whoever wants it asks again
        if not self._changes:
            return
        clocks = ctx.state.clocks
        at = {"env_steps": clocks.env_steps, "optimizer_steps": clocks.optimizer_steps}
        noted = [{**asdict(change), **at} for change in self._changes]
        self._folder.write_config(replace(self._config, changes=[*self._config.changes, *noted]))


def _job(plan: _Plan, display: Display, ranks: Ranks, *, lock: RunLock | None) -> Job:
    folder, config, settings = plan.folder, plan.config, plan.settings
    # Here and not above: torch takes a second to import, which a wrong argument should not cost.
    with _kept_to_the_end():
        import torch

        from hookloop.core import HookManager, derive_seed
        from hookloop.core.global_random import seed_global_random
        from hookloop.core.rng import rank_seed

        hooks = HookManager(ranks=ranks)
        for hook in run_hooks(folder, config, settings, display, resume=plan.resume, lock=lock):
            hooks.add(hook)
    torch.set_num_threads(config.threads)
    seed_global_random(derive_seed(rank_seed(config.seed, ranks.rank), "global"))  # for hooks of users
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


def _weights_sha256(job: Job) -> str:
    sha256 = hashlib.sha256()
    for name, tensor in job.model.state_dict().items():
        sha256.update(name.encode() + tensor.detach().cpu().contiguous().numpy().tobytes())
    return sha256.hexdigest()


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
