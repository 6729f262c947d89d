"""Iterables: their order is their own, so a resume goes through them again up to where it was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import torch
from torch.utils.data import DataLoader

from hookloop.core import derive_seed
from hookloop.errors import ConfigError
from hookloop.supervised.data.collators import Collate
from hookloop.supervised.data.moving import to_device
from hookloop.supervised.data.source import Batch, Plain
from hookloop.supervised.seeds import PrivateStreams

_END = object()


class StreamSource:
    """Anything that can be iterated once per epoch: iterable datasets, generators' makers, loaders of one's own.

    What it draws at random comes from streams of its own that follow from seed and epoch, so that the second time
    it yields what it has yielded the first time. ``set_epoch`` is called where there is one.

    Args:
        items: What to iterate; batches, or samples if ``collate`` is given.
        batch_size: Samples in a batch, if ``collate`` is given.
        collate: Makes a batch of samples; None if the items are batches.
        drop_last: Leave out a last batch that is not full.
        seed: What its random streams follow from.
        device: Where batches are wanted.
    """

    def __init__(
        self,
        items: Iterable[Any],
        *,
        batch_size: int = 1,
        collate: Collate | None = None,
        drop_last: bool = False,
        seed: int = 0,
        device: torch.device | None = None,
    ) -> None:
        self.samples: int | None = None
        self.batches: int | None = _length(items) if collate is None else None
        is_used_up = iter(items) is items if not isinstance(items, DataLoader) else False
        self.exactness = "learner-exact" if is_used_up else "bit-exact"
        self.inexact_because = "the data are an iterator, which cannot be gone through twice" if is_used_up else ""
        self._items = items
        self._batch_size = batch_size
        self._collate = collate
        self._drop_last = drop_last
        self.seed = seed
        self._device = device
        self._is_used_up = is_used_up

    @property
    def fingerprint(self) -> dict[str, Plain]:
        """What must be the same for a resume."""
        return {"batches": self.batches, "batch_size": self._batch_size}

    def size_of(self, index: int) -> int | None:
        """Nobody knows before the batch is there."""
        return None

    def iterate(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """Yield the batches of an epoch from number ``start`` on."""
        if self._is_used_up and epoch:
            raise ConfigError(
                "The data are an iterator, which is used up after one epoch; give something that can be iterated "
                "again, such as an IterableDataset, or set epochs=1."
            )
        for item in (self._items, getattr(self._items, "dataset", None), getattr(self._items, "sampler", None)):
            if callable(getattr(item, "set_epoch", None)):
                item.set_epoch(epoch)  # type: ignore[union-attr]  # it is there
        _seed_samplers(self._items, derive_seed(self.seed, "sampler", epoch))
        batches = self._batched(_guarded(self._items, derive_seed(self.seed, "stream", epoch)))
        left = batches if self._is_used_up else islice(batches, start, None)
        return left if self._device is None else (to_device(batch, self._device) for batch in left)

    def _batched(self, items: Iterator[Any]) -> Iterator[Batch]:
        if self._collate is None:
            yield from items
            return
        while samples := list(islice(items, self._batch_size)):
            if len(samples) < self._batch_size and self._drop_last:
                return
            yield self._collate(samples)


def _guarded(items: Iterable[Any], seed: int) -> Iterator[Any]:
    """Iterate with random streams apart from those of training."""
    streams = PrivateStreams(seed)
    with streams:
        iterator = iter(items)
    while True:
        with streams:
            item = next(iterator, _END)
        if item is _END:
            return
        yield item


def _seed_samplers(items: Any, seed: int) -> None:
    """Seed the generators that a loader and its samplers draw the order from."""
    found = (items, getattr(items, "sampler", None), getattr(items, "batch_sampler", None))
    for number, owner in enumerate(found):
        own = getattr(owner, "generator", None)
        if isinstance(own, torch.Generator):
            own.manual_seed(derive_seed(seed, number))


def _length(items: Any) -> int | None:
    try:
        return len(items)
    except TypeError:
        return None
