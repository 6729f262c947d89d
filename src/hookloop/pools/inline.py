"""A pool without workers: the calling process computes, when it is asked for results."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hookloop.pools.admission import Admission
from hookloop.pools.protocol import MakePerformer, PoolHealth, Result, Task

if TYPE_CHECKING:
    from torch import Tensor

CALLER = -1


class InlinePool:
    """Computes in the calling process, one task for each poll; an error of a task is raised as it is.

    Args:
        make: Makes what computes.
    """

    workers = 0

    def __init__(self, make: MakePerformer) -> None:
        self._performer = make()
        self._admission = Admission()
        self._waiting: deque[Task] = deque()
        self._is_closed = False

    def publish(self, version: int, tensors: Mapping[str, Tensor]) -> None:
        """Offer newer weights."""
        self._admission.take_version(version)
        self._performer.take_weights(version, tensors)

    def submit(self, task: Task) -> None:
        """Ask for a result."""
        self._admission.admit(task)
        self._waiting.append(task)

    def poll(self, deadline_seconds: float | None = None) -> list[Result]:
        """Compute the oldest task and return its result; nothing if there is none."""
        if not self._waiting:
            return []
        task = self._waiting.popleft()
        started = time.perf_counter()
        value = self._performer.perform(task.payload)
        self._admission.forget(task.key)
        return [Result(task.key, value, self._admission.version, CALLER, time.perf_counter() - started)]

    def health(self) -> PoolHealth:
        """Tell how many tasks wait."""
        return PoolHealth(workers=0, alive=0, waiting=len(self._waiting), running=0)

    def close(self, deadline_seconds: float = 5.0) -> None:
        """Release what the performer holds."""
        if not self._is_closed:
            self._is_closed = True
            self._performer.close()
