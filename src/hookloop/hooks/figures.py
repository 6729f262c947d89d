"""The figures of an epoch that other hooks do not log: its episodes, its experience, the settings in force."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from hookloop.core import HookContext, Schedule
from hookloop.core.schedule_text import as_schedule

Live = Any
Plain = Any


class FiguresHook:
    """Log means over the episodes since the last row, and what the workload tells of itself.

    Rollout statistics are gathered at each ``rollout_end``: nested ones by their path joined by '/', lists by their
    mean over everything since the last row. They are forgotten once they are logged.

    Args:
        log_every: When to log: a schedule, or a text such as "every 10 epochs".
    """

    name = "figures"
    on_error = "disable"

    def __init__(self, log_every: Schedule | str = "every 1 epochs") -> None:
        self.schedule = {"epoch_end": as_schedule(log_every)}
        self.log_every = log_every
        self._sums: dict[str, list[float]] = {}

    def on_rollout_end(self, ctx: HookContext) -> None:
        """Gather the statistics of a rollout."""
        for name, total, count in _totals(ctx.state.rollout_stats, ""):
            gathered = self._sums.setdefault(name, [0.0, 0.0])
            gathered[0] += total
            gathered[1] += count

    def on_epoch_end(self, ctx: HookContext) -> None:
        """Log what was gathered, and forget it."""
        sums, self._sums = self._sums, {}
        found = {f"env_{name}": total / count for name, (total, count) in sums.items()}
        if "return/mean" in ctx.metrics:
            found["overview/reward"] = ctx.metrics["return/mean"]
        tell: Callable[[], Mapping[str, float]] | None = getattr(_workload(ctx), "figures", None)
        ctx.log({**found, **(tell() if tell is not None else {})})

    def state_dict(self) -> dict[str, Plain]:
        """Return what was gathered since the last row."""
        return {"sums": {name: list(gathered) for name, gathered in self._sums.items()}}

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on from what was gathered."""
        self._sums = {name: [float(each) for each in gathered] for name, gathered in saved["sums"].items()}


def _workload(ctx: HookContext) -> object:
    return None if ctx.loop is None else ctx.loop.workload


def _totals(stats: Mapping[str, Live], prefix: str) -> Iterator[tuple[str, float, int]]:
    """Yield path, sum and count of every finite number and list of numbers."""
    for name, value in stats.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping):
            yield from _totals(cast("Mapping[str, Live]", value), f"{path}/")
            continue
        numbers = [number for number in _numbers(value) if math.isfinite(number)]
        if numbers:
            yield path, math.fsum(numbers), len(numbers)


def _numbers(value: Live) -> list[float]:
    if hasattr(value, "tolist"):  # a tensor or an array
        value = value.detach().tolist() if hasattr(value, "detach") else value.tolist()
    if isinstance(value, (list, tuple)):
        return [number for each in cast("list[Live]", value) for number in _numbers(each)]
    return [float(value)] if isinstance(value, (bool, int, float)) else []
