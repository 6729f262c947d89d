"""The processes of a distributed run, as threads of one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")

PATIENCE_SECONDS = 30  # a rank that does not come to a meeting has failed


@dataclass(slots=True)
class _Meeting:
    """Where the ranks meet: everybody puts a value down, everybody sees all of them."""

    world_size: int
    barrier: threading.Barrier = field(init=False)
    values: list[Any] = field(init=False)

    def __post_init__(self) -> None:
        self.barrier = threading.Barrier(self.world_size)
        self.values = [None] * self.world_size

    def exchange(self, rank: int, value: Any) -> list[Any]:
        self.values[rank] = value
        self.barrier.wait(PATIENCE_SECONDS)
        seen = list(self.values)
        self.barrier.wait(PATIENCE_SECONDS)  # nobody writes the next value before all have read this one
        return seen


class FakeRanks:
    """One rank of a pretended run; ``FakeRanks.run(2, train)`` calls ``train(ranks)`` on two at once."""

    def __init__(self, rank: int, world_size: int, meeting: _Meeting) -> None:
        self.rank = rank
        self.world_size = world_size
        self._meeting = meeting

    def broadcast(self, value: T) -> T:
        """Return main's value on every rank."""
        return self._meeting.exchange(self.rank, value)[0]

    def gather(self, value: T) -> list[T]:
        """Return the values of all ranks."""
        return self._meeting.exchange(self.rank, value)

    def average(self, tensor: Any) -> None:
        """Replace a tensor by its mean over all ranks, added up in their order."""
        first, *others = self._meeting.exchange(self.rank, tensor.clone())
        total = first.clone()
        for other in others:
            total += other
        tensor.copy_(total / self.world_size)

    @staticmethod
    def run(world_size: int, act: Callable[[FakeRanks], T]) -> list[T]:
        """Call ``act`` once per rank, in parallel, and return what each gave."""
        meeting = _Meeting(world_size)
        ranks = [FakeRanks(rank, world_size, meeting) for rank in range(world_size)]

        def guarded(rank: FakeRanks) -> T:
            try:
                return act(rank)
            except BaseException:
                meeting.barrier.abort()  # the others would wait for a rank that is gone
                raise

        with ThreadPoolExecutor(world_size) as pool:
            futures = [pool.submit(guarded, rank) for rank in ranks]
            errors = [error for error in (future.exception() for future in futures) if error is not None]
            # The rank that failed by itself tells more than those that waited for it.
            for error in sorted(errors, key=lambda error: isinstance(error, threading.BrokenBarrierError)):
                raise error
            return [future.result() for future in futures]
