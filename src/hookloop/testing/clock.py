"""A stopwatch that moves when told to."""

from __future__ import annotations


class ManualClock:
    """Stands in for ``time.perf_counter_ns``: ``HookManager(time_ns=ManualClock())``."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        """Return the time, in nanoseconds."""
        return self.now_ns

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now_ns += round(seconds * 1e9)
