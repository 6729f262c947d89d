"""How many workers pay: found out while training goes on, since who plays a rollout never changes it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from hookloop.pools import PoolHealth, Result, Task, WorkerPool

if TYPE_CHECKING:
    from torch import Tensor

WARM_UPS = 1
TIMED = 2
CHEAP_SECONDS = 0.004
"""Rollouts that are played in this time, all slots together, are sent to nobody: the sending would take as long."""
LEAST_GAIN = 1.1
"""So many times faster workers have to be than the calling process."""

MakePool = Callable[[], WorkerPool]


def pays(inline_seconds: float, pool_seconds: float) -> bool:
    """Tell whether workers are worth their while."""
    return inline_seconds > LEAST_GAIN * pool_seconds


class MeasuredPool:
    """Plays in the calling process first, then with workers, and stays with whoever is faster.

    It changes hands only between two iterations, when new weights are published. Rollouts that are over in a moment
    never start a worker.

    Args:
        make_inline: Makes the pool that computes in the calling process.
        make_pool: Makes the pool with workers.
        seconds: The stopwatch.
    """

    def __init__(
        self, make_inline: MakePool, make_pool: MakePool, *, seconds: Callable[[], float] = time.perf_counter
    ) -> None:
        self._make_pool = make_pool
        self._pool = make_inline()
        self._inline: WorkerPool | None = self._pool  # kept while it may be gone back to
        self._seconds = seconds
        self._started = 0.0
        self._times: list[float] = []
        self._inline_seconds: float | None = None
        self._is_decided = False

    @property
    def workers(self) -> int:
        """How many play now."""
        return self._pool.workers

    def publish(self, version: int, tensors: Mapping[str, Tensor]) -> None:
        """Offer newer weights, to whoever plays from here on."""
        if not self._is_decided and len(self._times) == WARM_UPS + TIMED:
            self._decide(min(self._times[WARM_UPS:]))
        self._pool.publish(version, tensors)
        self._started = self._seconds()
        self._times.append(0.0)

    def submit(self, task: Task) -> None:
        """Ask for a result."""
        self._pool.submit(task)

    def poll(self, deadline_seconds: float | None = None) -> list[Result]:
        """Return the results that are new."""
        results = self._pool.poll(deadline_seconds)
        if not self._is_decided:
            self._times[-1] = self._seconds() - self._started
        return results

    def health(self) -> PoolHealth:
        """Tell how the workers are."""
        return self._pool.health()

    def close(self, deadline_seconds: float = 5.0) -> None:
        """End the workers."""
        self._pool.close(deadline_seconds)
        if self._inline is not None:
            self._inline.close()

    def _decide(self, seconds: float) -> None:
        """Go on to the workers, back from them, or stay."""
        self._times.clear()
        if self._inline_seconds is None and seconds > CHEAP_SECONDS:
            self._inline_seconds = seconds
            self._pool = self._make_pool()
            return
        self._is_decided = True
        if self._inline_seconds is None or self._inline is None:
            return
        if pays(self._inline_seconds, seconds):
            self._inline.close()
            self._inline = None
        else:
            self._pool.close()
            self._pool = self._inline
