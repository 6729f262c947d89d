"""The workers of one seat, one after the other: when the next may begin, and when another would be no use."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

from hookloop.pools.status import StatusRow

FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 5.0
MOST_NEVER_READY = 3
MOST_FRUITLESS = 8


class Turns(ABC):
    """What a pool knows of a seat, whatever kind of worker sits there.

    Args:
        number: Which worker it is.
        status: What it does, and since when.
    """

    def __init__(self, number: int, status: StatusRow) -> None:
        self.number = number
        self.status = status
        self.results = 0
        """Of the worker that sits here now."""
        self.sent_at = 0.0
        """When it was sent something last."""
        self._start_at = 0.0
        self._is_ready = False
        self._fruitless = 0  # workers that ended, one after the other, without a result
        self._never_ready = 0  # those that could not even start

    @property
    @abstractmethod
    def is_taken(self) -> bool:
        """Tell whether a worker was started here that is not known to have ended."""

    @property
    @abstractmethod
    def is_alive(self) -> bool:
        """Tell whether its process runs, as far as that can be known from here."""

    @property
    @abstractmethod
    def pid(self) -> int | None:
        """The number of its process, on the machine where it runs."""

    @property
    def is_ready(self) -> bool:
        """Tell whether the worker takes tasks."""
        return self._is_ready

    @property
    def is_hopeless(self) -> bool:
        """Tell whether one worker after the other has ended here without any use."""
        return not self._is_ready and (self._never_ready >= MOST_NEVER_READY or self._fruitless >= MOST_FRUITLESS)

    @property
    def pause_seconds(self) -> float:
        """How long it is until the next worker may be started."""
        return max(0.0, self._start_at - time.monotonic())

    def note_ready(self) -> None:
        """Note that the worker takes tasks."""
        self._is_ready = True
        self._never_ready = 0

    def note_result(self) -> None:
        """Note that the worker has given a result."""
        self.results += 1
        self._fruitless = 0

    def plan_next(self) -> None:
        """Note that a worker has ended by itself, or had to be ended, and let the next one wait the longer for that."""
        self._never_ready += not self._is_ready
        self._fruitless += 1
        if self._fruitless > 1:
            pause = min(FIRST_PAUSE_SECONDS * 2 ** (self._fruitless - 2), LONGEST_PAUSE_SECONDS)
            self._start_at = time.monotonic() + pause
