"""What hooks cost: calls and time per hook and event, always recorded, and budgets held against it."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from hookloop.core.options import Budget

log = logging.getLogger("hookloop.hooks")

GRACE_NS = 1_000_000_000  # below a second of run time a share says nothing


@dataclass(frozen=True, slots=True)
class HookCost:
    """The cost of one hook on one event so far in this process.

    A hook that runs on every firing of an event is timed on each of the first 1,024 and on one in nine after that;
    a scheduled hook is timed on every call.
    """

    hook: str
    event: str
    calls: int
    total_ns: int
    max_ns: int
    timed_calls: int

    @property
    def mean_ns(self) -> float:
        """Nanoseconds per call; 0 before the first."""
        return self.total_ns / self.calls if self.calls else 0.0


def over_budget(budget: Budget, costs: Iterable[HookCost], elapsed_ns: int) -> str | None:
    """Return by how much a hook exceeds its budget, in words; None if it does not."""
    total_ns, calls = 0, 0
    for cost in costs:
        total_ns += cost.total_ns
        calls += cost.calls
    if budget.share is not None and elapsed_ns >= GRACE_NS and total_ns > budget.share * elapsed_ns:
        return f"takes {total_ns / elapsed_ns:.1%} of the run's time; its budget is {budget.share:.1%}"
    if budget.seconds_per_call is not None and calls and total_ns / calls > budget.seconds_per_call * 1e9:
        return f"takes {total_ns / calls / 1e6:.2f} ms per call; its budget is {budget.seconds_per_call * 1e3:.2f} ms"
    return None
