"""Slots that stay with their worker: for environments that cannot be saved, and so cannot be taken elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from hookloop.pools import PoolHealth, Result, Task, TaskKey, WorkerPool

if TYPE_CHECKING:
    from torch import Tensor


class PinnedPools:
    """Several pools of one worker each; a slot always goes to the same one.

    Args:
        make_pool: Makes a pool of one worker.
        workers: How many pools.
    """

    def __init__(self, make_pool: Callable[[], WorkerPool], workers: int) -> None:
        self._pools = [make_pool() for _ in range(workers)]
        self._under_way: list[set[TaskKey]] = [set() for _ in range(workers)]

    @property
    def workers(self) -> int:
        """How many there are."""
        return len(self._pools)

    def publish(self, version: int, tensors: Mapping[str, Tensor]) -> None:
        """Offer newer weights to all."""
        for pool in self._pools:
            pool.publish(version, tensors)

    def submit(self, task: Task) -> None:
        """Ask the worker of a slot for a result."""
        owner = task.key.slot % len(self._pools)
        self._pools[owner].submit(task)
        self._under_way[owner].add(task.key)

    def poll(self, deadline_seconds: float | None = None) -> list[Result]:
        """Return what is there; if that is nothing, wait for the first worker that has something to do."""
        results = [result for owner in range(len(self._pools)) for result in self._ask(owner, 0.0)]
        busy = [owner for owner, keys in enumerate(self._under_way) if keys]
        return results or (self._ask(busy[0], deadline_seconds) if busy else [])

    def health(self) -> PoolHealth:
        """Tell how the workers are, all together."""
        parts = [pool.health() for pool in self._pools]
        return PoolHealth(
            workers=len(parts),
            alive=sum(part.alive for part in parts),
            waiting=sum(part.waiting for part in parts),
            running=sum(part.running for part in parts),
            deaths=sum(part.deaths for part in parts),
            retries=sum(part.retries for part in parts),
            quarantined=tuple(key for part in parts for key in part.quarantined),
            phases={number: phase for number, part in enumerate(parts) for phase in part.phases.values()},
        )

    def close(self, deadline_seconds: float = 5.0) -> None:
        """End the workers."""
        for pool in self._pools:
            pool.close(deadline_seconds)

    def _ask(self, owner: int, deadline_seconds: float | None) -> list[Result]:
        results = self._pools[owner].poll(deadline_seconds) if self._under_way[owner] else []
        self._under_way[owner] -= {result.key for result in results}
        return results
