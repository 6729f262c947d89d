"""``hookloop train``: carry out a recipe."""

from __future__ import annotations

import logging
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hookloop.config.overrides import apply_overrides
from hookloop.errors import ConfigError
from hookloop.recipes import find_recipe, split_arguments
from hookloop.storage.atomic import write_bytes, write_json

if TYPE_CHECKING:
    from hookloop.rl.config import RLConfig
    from hookloop.rl.trainer import Trainer, TrainResult

Display = Literal["auto", "live", "plain", "json", "off"]
_RUN_NAME = re.compile(r"[A-Za-z0-9][\w.\-]{0,99}", re.ASCII)


def train(
    *recipe: str,
    run: str | None = None,
    runs_dir: Path = Path("runs"),
    seed: int = 0,
    device: Literal["auto", "cpu"] = "auto",
    threads: int = 1,
    display: Display = "auto",
    dry_run: bool = False,
) -> int:
    """Train a recipe.

    Args:
        recipe: The recipe's name ('hookloop recipes'), then settings to change as NAME=VALUE ('hookloop config').
        run: The run's name; made of the recipe and the time by default.
        runs_dir: The folder of all runs.
        seed: The root of all randomness.
        device: Where to train; the CPU is what there is so far.
        threads: Threads of one tensor operation; more than one pays for large networks only.
        display: How to show progress; 'live' and 'auto' are one line per interval until there is a live display.
        dry_run: Show the settings, the hooks and the files, and stop.
    """
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    name, overrides = split_arguments(recipe)
    settings = apply_overrides(find_recipe(name), overrides, what=f"the recipe {name!r}")
    folder = _folder(runs_dir, run or f"{name}-{datetime.now(UTC):%Y%m%d-%H%M%S}", is_dry=dry_run)
    trainer = _trainer(settings, seed, display, threads)
    if dry_run:
        _show_plan(settings, trainer, folder)
        return 0
    write_json(folder / "config.json", {"recipe": name, "seed": seed, "settings": settings.model_dump(mode="json")})
    result = trainer.train(settings.total_env_steps)
    _write_outcome(folder, trainer, result)
    _say_goodbye(folder, name, trainer, result)
    return result.loop.exit_code


def _trainer(settings: RLConfig, seed: int, display: Display, threads: int) -> Trainer:
    # Here and not above: torch takes a second to import, which a wrong argument should not cost.
    import torch

    from hookloop.hooks import GoalHook, ProgressHook
    from hookloop.rl.build import build_trainer

    torch.set_num_threads(threads)
    hooks: list[object] = []
    if settings.stop_at_return is not None:
        hooks.append(GoalHook(settings.stop_at_return))
    if display != "off":
        style = "json" if display == "json" else "plain"
        hooks.append(ProgressHook(style=style, total_env_steps=settings.total_env_steps))
    return build_trainer(settings, hooks=hooks, seed=seed, second_signal="exit")


def _folder(runs_dir: Path, name: str, *, is_dry: bool) -> Path:
    if not _RUN_NAME.fullmatch(name):
        raise ConfigError(f"A run's name must be letters, digits, '.', '-' or '_', got {name!r}; it names a folder.")
    folder = runs_dir / name
    if folder.exists() and not is_dry:
        raise ConfigError(f"There is a run {name!r} in {runs_dir} already; choose another name with --run.")
    return folder


def _show_plan(settings: RLConfig, trainer: Trainer, folder: Path) -> None:
    say(settings.model_dump_json(indent=2))
    say(f"hooks, in order: {', '.join(trainer.hooks.order()) or 'none'}")
    say(f"parameters: {sum(p.numel() for p in trainer.policy.parameters())}")
    say(f"files: {folder / 'config.json'}, {folder / 'policy.safetensors'}, {folder / 'result.json'}")


def _write_outcome(folder: Path, trainer: Trainer, result: TrainResult) -> None:
    from safetensors.torch import save

    weights = {name: tensor.detach().clone().contiguous() for name, tensor in trainer.policy.state_dict().items()}
    write_bytes(folder / "policy.safetensors", save(weights))
    fields = ("version", "outcome", "env_steps", "epochs", "episodes", "optimizer_steps", "seconds", "mean_return")
    write_json(folder / "result.json", {name: getattr(result, name) for name in fields})


def _say_goodbye(folder: Path, recipe: str, trainer: Trainer, result: TrainResult) -> None:
    reached = "no episode finished" if result.mean_return is None else f"mean return {result.mean_return:.1f}"
    why = f" ({result.loop.stop.reason})" if result.loop.stop is not None else ""
    speed = result.env_steps / max(result.seconds, 1e-9)
    say(f"{result.outcome}{why}")
    say(f"  reached  {reached} after {result.env_steps} steps in {result.seconds:.1f} s ({speed:.0f} steps/s)")
    say(f"  where    {folder}")
    say(f"  again    hookloop train {recipe} --seed 1")
    say(f"  look     hookloop config {recipe}")
    for hook, failures in trainer.state.failures.items():
        say(f"  failed   hook {hook}: {failures.count} times, last: {failures.last_error}")


def say(line: str) -> None:
    """Write one line of result."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
