"""What training reads batches from: an order that follows from (seed, epoch, index), and a cursor that is a number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import torch

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
    """The arithmetic of data whose samples have numbers; what tensors and map datasets share."""

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
