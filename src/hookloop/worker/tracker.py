"""Metrics that a worker's hooks log by hand: they join the rows that the hooks return."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from hookloop.core import HookContext
from hookloop.worker.counts import WORKER_STEPS

Plain = Any


class WorkerTracker(Protocol):
    """What ``context.worker.tracker`` can do."""

    def log(self, metrics: Mapping[str, Plain], *, step: int | None = None) -> None:
        """Log metrics at a step of the worker; at the present one by default."""
        ...


class RowTracker:
    """Logs to the metrics of the run, where trackers and statistics take them from; each row names its clocks."""

    def __init__(self, context: HookContext) -> None:
        self._context = context

    def log(self, metrics: Mapping[str, Plain], *, step: int | None = None) -> None:
        """Log metrics at a step of the worker; at the present one by default."""
        self._context.log(metrics)
        if metrics and step is not None:
            self._context.state.pending_metrics[-1]["clocks"][WORKER_STEPS] = step
