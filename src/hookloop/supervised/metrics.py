"""The table of a run: one row of metrics for each epoch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from hookloop.core import HookContext

Plain = Any
Row = dict[str, Any]


class MetricsTracker:
    """Keeps the metrics of every epoch, resumed ones included; what is not finite is kept as None."""

    name = "metrics_tracker"
    saved = ("rows",)
    priority = 100  # before the hooks that read the table

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def on_epoch_end(self, ctx: HookContext) -> None:
        """Add a row."""
        clocks = ctx.state.clocks
        row: Row = {"epoch": clocks.epochs, "optimizer_steps": clocks.optimizer_steps}
        self.rows.append({**row, **{name: _number(value) for name, value in ctx.metrics.items()}})

    def column(self, name: str) -> list[float | None]:
        """Return one metric over all epochs; None where it was not measured."""
        return [row.get(name) for row in self.rows]

    def best(self, metric: str, mode: Literal["min", "max"] = "min") -> Row | None:
        """Return the row of the best epoch, of equals the first; None if the metric was never measured."""
        measured = [row for row in self.rows if row.get(metric) is not None]
        if not measured:
            return None
        sign = 1 if mode == "min" else -1
        return min(measured, key=lambda row: sign * row[metric])


def finite(metrics: Mapping[str, Plain]) -> dict[str, float]:
    """Return the metrics that are finite numbers."""
    return {name: value for name, value in metrics.items() if _number(value) is not None}


def _number(value: Plain) -> float | None:
    return value if isinstance(value, int | float) and math.isfinite(value) else None
