"""What training reads batches from: an order that follows from (seed, epoch, index), and a cursor that is a number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import torch

from hookloop.errors import ConfigError
from hookloop.supervised.seeds import generator

Batch = Any
Plain = Any


class Source(Protocol):
    """Batches of one set of data, epoch by epoch, from any batch on.

    Attributes:
        samples: How many samples there are; None if nobody knows.
        batches: How many batches an epoch has; None if nobody knows.
        seed: What the order follows from.
        fingerprint: What must be the same for a resume: plain data.
        exactness: What a resume in the middle of an epoch promises, as a checkpoint says it.
        inexact_because: Why it is not bit-exact; empty if it is.
    """

    samples: int | None
    batches: int | None
    seed: int
    exactness: str
    inexact_because: str

    @property
    def fingerprint(self) -> dict[str, Plain]:
        """What must be the same for a resume."""
        ...

    def iterate(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """Yield the batches of an epoch from number ``start`` on."""
        ...

    def size_of(self, index: int) -> int | None:
        """Return how many samples batch number ``index`` has; None if nobody knows before it is there.

        All but the last have the same number.
        """
        ...


def order_of(samples: int, *, seed: int, epoch: int, shuffle: bool) -> torch.Tensor:
    """Return the order of the samples in an epoch: a function of seed and epoch alone."""
    if not shuffle:
        return torch.arange(samples)
    return torch.randperm(samples, generator=generator(seed, "order", epoch))


def count_batches(samples: int, batch_size: int, *, drop_last: bool) -> int:
    """Return how many batches so many samples make."""
    return samples // batch_size if drop_last else -(-samples // batch_size)


class Numbered:
    """The arithmetic of data whose samples have numbers; what tensors and map datasets share.

    Of several learners each takes its share of every batch: the batches of all of them are those of one.
    """

    exactness = "bit-exact"
    inexact_because = ""

    def __init__(self, samples: int, batch_size: int, *, drop_last: bool, shuffle: bool, seed: int) -> None:
        self.samples: int | None = samples
        self.batches: int | None = count_batches(samples, batch_size, drop_last=drop_last)
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = seed
        self._count = samples
        self._drop_last = drop_last
        self.rank = 0
        self.world_size = 1

    @property
    def fingerprint(self) -> dict[str, Plain]:
        """What must be the same for a resume."""
        return {
            "samples": self._count,
            "batch_size": self.batch_size,
            "shuffle": self.shuffle,
            "drop_last": self._drop_last,
        }

    def size_of(self, index: int) -> int | None:
        """Return how many samples batch number ``index`` has."""
        return min(self.batch_size, self._count - index * self.batch_size)

    @property
    def share_size(self) -> int:
        """How many samples of a full batch are this learner's."""
        return self.batch_size // self.world_size

    def own_size_of(self, index: int) -> int:
        """Return how many samples of batch number ``index`` are this learner's."""
        size = self.size_of(index) or 0
        return size * (self.rank + 1) // self.world_size - size * self.rank // self.world_size

    def share(self, rank: int, world_size: int) -> None:
        """Give one learner of several its share; a last batch with fewer samples than learners is left out."""
        if self.batch_size % world_size:
            near = max(world_size, round(self.batch_size / world_size) * world_size)
            raise ConfigError(
                f"A batch of {self.batch_size} samples cannot be shared evenly by {world_size} learners; the nearest "
                f"batch_size that can is {near}."
            )
        self.rank, self.world_size = rank, world_size
        self.batches = count_batches(self._count, self.batch_size, drop_last=self._drop_last)
        if self.batches and (self.size_of(self.batches - 1) or 0) < world_size:
            self.batches -= 1

    def mine(self, numbers: torch.Tensor) -> torch.Tensor:
        """Return this learner's share of what an epoch goes through, one number for each sample, batch by batch."""
        if self.world_size == 1:
            return numbers
        used = numbers[: (self.batches or 0) * self.batch_size]
        full = len(used) // self.batch_size * self.batch_size
        own = used[:full].view(-1, self.world_size, self.share_size)[:, self.rank].reshape(-1)
        left = used[full:]
        return torch.cat(
            (own, left[len(left) * self.rank // self.world_size : len(left) * (self.rank + 1) // self.world_size])
        )
