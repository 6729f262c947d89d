"""From whatever holds the data to a source of batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset, RandomSampler, SequentialSampler

from hookloop.errors import ConfigError
from hookloop.supervised.data.collators import Collate, make_collator
from hookloop.supervised.data.samples import SampleSource
from hookloop.supervised.data.source import Source
from hookloop.supervised.data.streams import StreamSource
from hookloop.supervised.data.tensors import TensorSource, find_tensors

Data = Any


@dataclass(frozen=True, slots=True)
class DataLoaderFactory:
    """Makes sources of batches, all in the order that the seed says, whoever loads them.

    Args:
        batch_size: Samples in a batch.
        seed: What the order and the randomness of workers follow from.
        drop_last: Leave out a last batch that is not full.
        num_workers: Processes that load samples; tensors in memory need none.
        collate: The name of a collator, or a function.
        pad_token_id: What shorter sequences are filled up with.
        device: Where batches are wanted; None leaves them where they are.
    """

    batch_size: int = 32
    seed: int = 0
    drop_last: bool = False
    num_workers: int = 0
    collate: str | Collate | None = None
    pad_token_id: int | None = None
    device: torch.device | None = None

    def make(self, data: Data, *, shuffle: bool = True, what: str = "training data") -> Source:
        """Return a source of batches: for tensors, map and iterable datasets, loaders, and mappings of columns."""
        if isinstance(data, str | bytes) or data is None:
            raise ConfigError(f"The {what} must be a dataset, a loader or tensors, got {data!r:.80}.")
        if callable(getattr(data, "iterate", None)) and callable(getattr(data, "size_of", None)):
            source: Source = data  # a source already
        elif isinstance(data, DataLoader):
            source = self._from_loader(data, shuffle=shuffle)
        else:
            source = self._from_data(data, shuffle=shuffle, what=what)
        if source.batches == 0:
            hint = f", or fewer than the batch size {self.batch_size} with drop_last" if self.drop_last else ""
            raise ConfigError(f"The {what} are empty: they hold no samples{hint}.")
        return source

    def _from_data(self, data: Data, *, shuffle: bool, what: str) -> Source:
        found = find_tensors(data) if self.collate is None else None
        if found is not None:
            tensors, names, is_single = found
            return TensorSource(
                tensors, names, batch_size=self.batch_size, drop_last=self.drop_last, shuffle=shuffle,
                seed=self.seed, device=self.device, is_single=is_single,
            )  # fmt: skip
        is_map = hasattr(data, "__getitem__") and hasattr(data, "__len__") and not isinstance(data, Mapping)
        if is_map and not isinstance(data, IterableDataset):
            return self._of_samples(data, self._collator(), shuffle=shuffle, num_workers=self.num_workers)
        if not hasattr(data, "__iter__"):
            raise ConfigError(
                f"The {what} are a {type(data).__name__}, which has neither __getitem__ and __len__ nor __iter__."
            )
        if self.num_workers and isinstance(data, IterableDataset):
            loader = DataLoader(
                data, batch_size=self.batch_size, drop_last=self.drop_last, num_workers=self.num_workers,
                collate_fn=self._collator(), generator=torch.Generator(),
            )  # fmt: skip
            return StreamSource(loader, seed=self.seed, device=self.device)
        return StreamSource(
            data, batch_size=self.batch_size, collate=self._collator(), drop_last=self.drop_last, seed=self.seed,
            device=self.device,
        )  # fmt: skip

    def _from_loader(self, loader: DataLoader[Any], *, shuffle: bool) -> Source:
        """Return the loader's own samples and batch size in our order, unless it has an order of its own."""
        sampler = loader.sampler
        is_plain = (
            type(loader.batch_sampler) is torch.utils.data.BatchSampler
            and type(sampler) in (SequentialSampler, RandomSampler)
            and not getattr(sampler, "replacement", False)
            and getattr(sampler, "_num_samples", None) is None
        )
        if not is_plain or loader.batch_size is None:
            return StreamSource(loader, seed=self.seed, device=self.device)
        own = DataLoaderFactory(loader.batch_size, self.seed, loader.drop_last, device=self.device)
        shuffle = shuffle and isinstance(sampler, RandomSampler)
        is_default = loader.collate_fn is torch.utils.data.default_collate
        if is_default and not loader.num_workers and isinstance(loader.dataset, torch.utils.data.TensorDataset):
            return own.make(loader.dataset, shuffle=shuffle)
        return own._of_samples(loader.dataset, loader.collate_fn, shuffle=shuffle, num_workers=loader.num_workers)

    def _of_samples(self, data: Data, collate: Collate, *, shuffle: bool, num_workers: int) -> Source:
        return SampleSource(
            data, batch_size=self.batch_size, collate=collate, drop_last=self.drop_last, shuffle=shuffle,
            seed=self.seed, num_workers=num_workers, device=self.device,
        )  # fmt: skip

    def _collator(self) -> Collate:
        if callable(self.collate):
            return self.collate
        return make_collator(self.collate, pad_token_id=self.pad_token_id)
