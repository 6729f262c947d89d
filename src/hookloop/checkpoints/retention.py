"""Which checkpoints to keep: the last, the best, one every so often, and the pinned."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from hookloop.checkpoints.manifest import Manifest
from hookloop.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Retention:
    """What to keep.

    Args:
        keep_last: The newest ones; at least one.
        keep_best: The best ones by ``metric``.
        keep_every: One of each so many steps, for good; None for none.
        metric: What "best" means; checkpoints without it are never the best.
        mode: Whether more is better, or less.
    """

    keep_last: int = 3
    keep_best: int = 1
    keep_every: int | None = None
    metric: str = "return/mean"
    mode: Literal["max", "min"] = "max"

    def __post_init__(self) -> None:
        if self.keep_last < 1:
            raise ConfigError(f"keep_last must be at least 1, got {self.keep_last}: a run needs one to go on from.")
        if self.keep_best < 0:
            raise ConfigError(f"keep_best must be 0 or more, got {self.keep_best}.")
        if self.keep_every is not None and self.keep_every < 1:
            raise ConfigError(f"keep_every must be at least 1 step, got {self.keep_every}; None keeps none.")
        if not isinstance(self.metric, str):
            raise ConfigError(f"metric must be the name of a metric, got {self.metric!r}.")
        if self.mode not in ("max", "min"):
            raise ConfigError(f"mode must be 'max' or 'min', got {self.mode!r}.")

    def best(self, checkpoints: Sequence[Manifest]) -> list[Manifest]:
        """Return those that have the metric, the best first; of equals the earlier one."""
        sign = -1.0 if self.mode == "max" else 1.0
        scored = [each for each in checkpoints if self.metric in each.metrics]
        return sorted(scored, key=lambda each: (sign * each.metrics[self.metric], each.step, each.name))

    def expendable(self, checkpoints: Sequence[Manifest], pinned: Collection[str] = ()) -> list[str]:
        """Return the names of those that nothing keeps; ``checkpoints`` are of one lineage, oldest first."""
        kept = {*pinned, *(each.name for each in checkpoints[-self.keep_last :])}
        kept.update(each.name for each in self.best(checkpoints)[: self.keep_best])
        if self.keep_every is not None:
            kept.update(self._first_of_each(checkpoints, self.keep_every))
        return [each.name for each in checkpoints if each.name not in kept]

    @staticmethod
    def _first_of_each(checkpoints: Sequence[Manifest], interval: int) -> set[str]:
        """Return the first checkpoint at or after each multiple of the interval."""
        first: dict[int, str] = {}
        for each in checkpoints:
            if each.step >= interval:
                first.setdefault(each.step // interval, each.name)
        return set(first.values())
