"""Whether the run that a worker works for goes on: asked now and then, and believed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from hookloop.core import TrainingLoop
from hookloop.errors import StatsError

MOST_FAILURES = 10
"""So many looks in a row that fail end the worker: one that cannot know when to stop would never stop."""


class RunStatus(Protocol):
    """What is known of a run: ``hookloop.stats.RunStatusReader`` reads it."""

    @property
    def state(self) -> str:
        """``running``, ``interrupted``, or how it ended: ``completed``, ``stopped`` or ``failed``."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether there is nothing left to work for."""
        ...

    @property
    def train_steps(self) -> int:
        """The optimizer steps of the run so far, over all attempts."""
        ...

    @property
    def attempt(self) -> int:
        """The attempt of the run, from 1."""
        ...


ReadStatus = Callable[[], RunStatus | None]
"""Returns what is known of the run; None if nothing is known yet."""


class StatusWatch:
    """Asks for the status at most every so many seconds, and asks the loop to stop when the run is over.

    Args:
        read: Returns what is known; None never stops.
        every_seconds: Between two looks.
        time_ns: The stopwatch.
    """

    def __init__(self, read: ReadStatus | None, every_seconds: float, time_ns: Callable[[], int]) -> None:
        self.latest: RunStatus | None = None
        self._read = read
        self._every_ns = round(every_seconds * 1e9)
        self._time_ns = time_ns
        self._next_ns: int | None = None
        self._failed_in_a_row = 0

    def check(self, loop: TrainingLoop) -> None:
        """Look, if it is time to, and ask the loop to stop if there is nothing left to work for."""
        if self._read is None:
            return
        now = self._time_ns()
        if self._next_ns is not None and now < self._next_ns:
            return
        self._next_ns = now + self._every_ns
        self.latest = self._look() or self.latest
        if self.latest is not None and self.latest.is_over:
            loop.context.request_stop(f"the run has ended: {self.latest.state}")

    def _look(self) -> RunStatus | None:
        """Read; a store that cannot be reached for a while leaves what was known."""
        assert self._read is not None
        try:
            found = self._read()
        except StatsError:
            self._failed_in_a_row += 1
            if self._failed_in_a_row >= MOST_FAILURES:
                raise
            return None
        self._failed_in_a_row = 0
        return found
