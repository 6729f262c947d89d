"""Learning rates as functions of the optimizer steps done; nothing to save, nothing to build anew."""

from __future__ import annotations

import math
from collections.abc import Callable

from hookloop.errors import ConfigError
from hookloop.supervised.training_config import LearningRateSchedule, TrainingSettings

Factor = Callable[[int], float]
"""The share of the full learning rate for the step after so many steps."""


def make_factor(config: TrainingSettings, total_steps: int | None) -> Factor | None:
    """Return the schedule of a run; None if the learning rate never changes."""
    if config.lr_schedule == "constant" and not config.warmup_steps:
        return None
    if total_steps is None and config.lr_schedule != "constant":
        raise ConfigError(
            f"The learning rate schedule {config.lr_schedule!r} needs to know its end, and the data do not say how "
            "many batches they hold; set max_steps."
        )
    return _Schedule(
        config.lr_schedule,
        total_steps=total_steps or 0,
        warmup_steps=config.warmup_steps,
        least=config.min_lr_ratio,
        decay_steps=round(config.decay_ratio * (total_steps or 0)),
    )


class _Schedule:
    """Rise, then fall: exactly 1 after the warm-up, exactly ``least`` after the last step."""

    def __init__(
        self, kind: LearningRateSchedule, *, total_steps: int, warmup_steps: int, least: float, decay_steps: int
    ) -> None:
        self._warmup = warmup_steps
        self._least = least
        self._falls: Callable[[float], float] = _FALLS[kind]
        begins = max(total_steps - decay_steps, warmup_steps) if kind == "wsd" else warmup_steps
        self._begins = begins
        self._length = max(total_steps - begins, 1)

    def __call__(self, steps: int) -> float:
        if steps < self._warmup:
            return (steps + 1) / self._warmup
        progress = min(max((steps - self._begins) / self._length, 0.0), 1.0)
        return self._least + (1 - self._least) * self._falls(progress)


_FALLS: dict[str, Callable[[float], float]] = {
    "constant": lambda progress: 1.0,
    "linear": lambda progress: 1 - progress,
    "cosine": lambda progress: (1 + math.cos(math.pi * progress)) / 2,
    "wsd": lambda progress: 1 - progress,
}
