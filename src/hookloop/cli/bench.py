"""``hookloop bench``: how many workers are worth it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hookloop.cli.tables import say, show_table, write_json
from hookloop.cli.workloads import build_job
from hookloop.config.overrides import apply_overrides
from hookloop.errors import ConfigError
from hookloop.recipes import find_recipe, split_arguments
from hookloop.rl.config import RolloutSettings

if TYPE_CHECKING:
    from hookloop.rl.slots import SlotCollector


def bench(*recipe: str, workers: tuple[int, ...] = (0, 1, 2), seconds: float = 2.0, json: bool = False) -> None:
    """Play the rollouts of a recipe with some numbers of workers, and say what 'workers=auto' would take.

    Args:
        recipe: The recipe's name, then settings to change as NAME=VALUE.
        workers: Numbers of workers to try; 0 plays in this process.
        seconds: How long to play with each.
        json: Print JSON.
    """
    name, overrides = split_arguments(recipe)
    settings = apply_overrides(find_recipe(name), overrides, what=f"the recipe {name!r}")
    if not isinstance(settings, RolloutSettings):
        raise ConfigError(f"The recipe {name!r} plays no rollouts; 'hookloop bench' is for those that do.")

    import torch

    from hookloop.rl.slots.speed import measure_steps_per_second, measured_choice

    torch.set_num_threads(1)

    def collector(count: int) -> SlotCollector:
        job = build_job(settings.model_copy(update={"workers": count}), hooks=(), seed=0)
        return cast("SlotCollector", job.trainer.workload.collector)

    speeds = {count: measure_steps_per_second(collector(count), seconds=seconds) for count in workers}
    choice = measured_choice(collector(0))
    if json:
        speeds_by_name = {str(count): speed for count, speed in speeds.items()}
        write_json(
            {"recipe": name, "slots": settings.slots, "steps_per_second": speeds_by_name, "auto": choice.workers}
        )
        return
    first = speeds[workers[0]]
    show_table(
        ("workers", "steps/s", f"against {workers[0]}"),
        [[str(count), f"{speed:.0f}", f"{speed / first:.2f}x"] for count, speed in speeds.items()],
    )
    say(
        f"workers=auto takes {choice.workers}: a rollout of {settings.slots} slots takes "
        f"{1000 * choice.inline_seconds:.1f} ms with none, {1000 * choice.seconds:.1f} ms with {choice.workers}"
    )
