"""What each worker does and since when, in memory that the pool reads without asking it."""

from __future__ import annotations

import mmap
import os
import time
from enum import IntEnum

import numpy as np

from hookloop.pools import memory

_ROW_WORDS = 8  # a cache line, so that workers do not slow each other down
_PHASE, _SERIAL, _SINCE = 0, 1, 2
NO_TASK = -1


class Phase(IntEnum):
    """What a worker does."""

    STARTING = 0
    WAITING = 1
    TAKING_WEIGHTS = 2
    COMPUTING = 3
    ENDED = 4

    def __str__(self) -> str:
        return self.name.lower().replace("_", " ")


class StatusBoard:
    """The memory, with a row for each worker."""

    def __init__(self, workers: int) -> None:
        self.size = workers * _ROW_WORDS * 8
        self.descriptor = memory.anonymous_file(self.size)
        self.rows = rows_of(os.dup(self.descriptor))

    def close(self) -> None:
        """Let go of the memory; what was written last can still be read here."""
        os.close(self.descriptor)


class StatusRow:
    """What one worker does."""

    def __init__(self, words: np.ndarray) -> None:
        self._words = words

    def enter(self, phase: Phase, serial: int = NO_TASK) -> None:
        """Say what begins now."""
        # The phase last: whoever reads it first finds at least its own time.
        self._words[_SINCE] = time.monotonic_ns()
        self._words[_SERIAL] = serial
        self._words[_PHASE] = phase

    @property
    def phase(self) -> Phase:
        """What the worker does."""
        return Phase(int(self._words[_PHASE]))

    @property
    def serial(self) -> int:
        """The task it has begun."""
        return int(self._words[_SERIAL])

    @property
    def seconds(self) -> float:
        """How long it has been doing that."""
        return (time.monotonic_ns() - int(self._words[_SINCE])) / 1e9


def rows_of(descriptor: int) -> list[StatusRow]:
    """Return the rows of a board; the descriptor is closed."""
    shared = mmap.mmap(descriptor, os.fstat(descriptor).st_size)
    os.close(descriptor)
    return [StatusRow(words) for words in np.frombuffer(shared, np.int64).reshape(-1, _ROW_WORDS)]
