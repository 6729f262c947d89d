"""Map datasets: samples with numbers, fetched here or by worker processes, always the same ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from hookloop.core import derive_seed
from hookloop.core.global_random import seed_global_random
from hookloop.core.rng import rank_seed
from hookloop.supervised.data.collators import Collate
from hookloop.supervised.data.moving import to_device
from hookloop.supervised.data.source import Batch, Numbered, Plain, order_of
from hookloop.supervised.seeds import generator


class SampleSource(Numbered):
    """A dataset with ``__getitem__`` and ``__len__``; Hugging Face datasets are such.

    What the dataset draws at random in this process comes from the global streams, as in any loop, and they are saved.
    In workers each batch has streams of its own, made from seed, epoch and batch: the same with one worker or eight.
    """

    def __init__(
        self,
        dataset: Any,
        *,
        batch_size: int,
        collate: Collate,
        drop_last: bool = False,
        shuffle: bool = True,
        seed: int = 0,
        num_workers: int = 0,
        device: torch.device | None = None,
        worker_options: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(len(dataset), batch_size, drop_last=drop_last, shuffle=shuffle, seed=seed)
        self._dataset = dataset
        self._collate = collate
        self._device = device
        self._num_workers = num_workers
        self._worker_options = worker_options or {}
        self._plan = _Plan()
        self._loader: DataLoader[Any] | None = None

    @property
    def fingerprint(self) -> dict[str, Plain]:
        """What must be the same for a resume; with the dataset's own fingerprint if it has one."""
        for name in ("fingerprint", "_fingerprint"):
            own = getattr(self._dataset, name, None)
            if isinstance(own, str):
                return {**super().fingerprint, "content": own}
        return super().fingerprint

    def iterate(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """Yield the batches of an epoch from number ``start`` on."""
        batches = self._loaded(epoch, start) if self._num_workers else self._fetch(epoch, start)
        return batches if self._device is None else (to_device(batch, self._device) for batch in batches)

    def close(self) -> None:
        """End the worker processes; the next epoch begins with new ones."""
        # By hand: what is collected in a cycle loses its queues first, and torch waits five seconds for each worker.
        self._plan.begin((), 0)
        self._loader = None

    def indices(self, epoch: int, start: int) -> Iterator[list[int]]:
        """Yield the numbers of the samples in each batch."""
        assert self.batches is not None
        order: Tensor = self.mine(order_of(self._count, seed=self.seed, epoch=epoch, shuffle=self.shuffle))
        for batch in order.split(self.share_size)[start : self.batches]:
            yield batch.tolist()

    def _fetch(self, epoch: int, start: int) -> Iterator[Batch]:
        fetch = _fetcher(self._dataset)
        for indices in self.indices(epoch, start):
            yield self._collate(fetch(indices))

    def _loaded(self, epoch: int, start: int) -> Iterator[Batch]:
        assert self.batches is not None
        self._plan.begin(self._seeded(epoch, start), self.batches - start)
        if self._loader is None:
            self._loader = self._make_loader()
        return iter(self._loader)

    def _seeded(self, epoch: int, start: int) -> Iterator[list[int]]:
        seed = rank_seed(self.seed, self.rank)
        for number, indices in enumerate(self.indices(epoch, start), start):
            yield [derive_seed(seed, "batch", epoch, number), *indices]

    def _make_loader(self) -> DataLoader[Any]:
        return DataLoader(
            _Seeded(self._dataset),
            batch_sampler=self._plan,
            collate_fn=self._collate,
            num_workers=self._num_workers,
            # Its base seed for the workers, which each batch overrides, must not come from the global stream.
            generator=generator(self.seed, "workers"),
            persistent_workers=True,
            **self._worker_options,
        )


class _Plan:
    """The batches that workers are to fetch: for each a seed, then the numbers of its samples."""

    def __init__(self) -> None:
        self.begin((), 0)

    def begin(self, batches: Iterable[list[int]], count: int) -> None:
        """Plan these batches next."""
        self._batches, self._count = batches, count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self._batches)


class _Seeded(Dataset[Any]):
    """A dataset in a worker: the first number of a batch is what its random streams begin with."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._fetch = _fetcher(dataset)

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitems__(self, numbers: list[int]) -> list[Any]:
        seed_global_random(numbers[0])
        return self._fetch(numbers[1:])


def _fetcher(dataset: Any) -> Any:
    many = getattr(dataset, "__getitems__", None)
    if callable(many):
        return many
    return _OneByOne(dataset)


class _OneByOne:
    """Fetches samples one by one; a class and no closure, so that workers can be spawned with it."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __call__(self, indices: list[int]) -> list[Any]:
        return [self._dataset[index] for index in indices]
