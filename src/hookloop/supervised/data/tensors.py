"""Data in memory: batches are cut from slabs that were gathered by a permuted index, sample by sample never."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from hookloop.errors import ConfigError
from hookloop.supervised.data.source import Batch, Numbered, order_of

SLAB_BYTES = 1 << 20  # stays in the cache until it is used
MOST_BATCHES = 256


class TensorSource(Numbered):
    """Tensors whose first axis are the samples: one, several, or some with names.

    Args:
        tensors: In the order of the batch.
        names: Their names, if the batch is to be a mapping; empty for a tuple, or for the tensor alone.
        batch_size: Samples in a batch.
        drop_last: Leave out a last batch that is not full.
        shuffle: Whether each epoch has an order of its own.
        seed: What the order follows from.
        device: Where batches are wanted.
    """

    def __init__(
        self,
        tensors: Sequence[Tensor],
        names: Sequence[str] = (),
        *,
        batch_size: int,
        drop_last: bool = False,
        shuffle: bool = True,
        seed: int = 0,
        device: torch.device | None = None,
        is_single: bool = False,
    ) -> None:
        counts = {len(tensor) for tensor in tensors}
        if len(counts) != 1:
            raise ConfigError(f"The tensors must have one length, got {', '.join(str(len(each)) for each in tensors)}.")
        super().__init__(counts.pop(), batch_size, drop_last=drop_last, shuffle=shuffle, seed=seed)
        self._tensors = tuple(tensors)
        self._names = tuple(names)
        self._device = device
        self._is_single = is_single
        bytes_per_batch = batch_size * max(sum(t[:1].nbytes for t in self._tensors), 1)
        self._slab = batch_size * min(max(SLAB_BYTES // bytes_per_batch, 1), MOST_BATCHES)

    def iterate(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """Yield the batches of an epoch from number ``start`` on."""
        assert self.batches is not None
        end, slab, order = min(self._count, self.batches * self.batch_size), self._slab // self.world_size, None
        if self.shuffle or self.world_size > 1:
            order = self.mine(order_of(self._count, seed=self.seed, epoch=epoch, shuffle=self.shuffle))
            end = min(end, len(order))
        for begin in range(start * self.share_size, end, slab):
            yield from self._cut(self._gather(order, begin, min(begin + slab, end)))

    def _gather(self, order: Tensor | None, begin: int, end: int) -> list[Tensor]:
        if order is None:
            slabs = [tensor[begin:end] for tensor in self._tensors]
        else:
            index = order[begin:end]
            slabs = [tensor.index_select(0, index.to(tensor.device)) for tensor in self._tensors]
        return slabs if self._device is None else [slab.to(self._device, non_blocking=True) for slab in slabs]

    def _cut(self, slabs: list[Tensor]) -> Iterator[Batch]:
        if self._is_single:
            return iter(slabs[0].split(self.share_size))
        rows = zip(*(slab.split(self.share_size) for slab in slabs), strict=True)
        return (dict(zip(self._names, row, strict=True)) for row in rows) if self._names else rows


def find_tensors(data: Any) -> tuple[list[Tensor], list[str], bool] | None:
    """Return the tensors of data that is in memory, their names, and whether it is one alone; None if it is not."""
    if isinstance(data, torch.utils.data.TensorDataset):
        return list(data.tensors), [], False
    if isinstance(data, Mapping) and data and all(_is_array(value) for value in data.values()):
        return [_tensor(value) for value in data.values()], [str(name) for name in data], False
    if isinstance(data, tuple) and data and all(_is_array(value) for value in data):  # a list is one of samples
        return [_tensor(value) for value in data], [], False
    return ([_tensor(data)], [], True) if _is_array(data) else None


def _is_array(value: Any) -> bool:
    return isinstance(value, Tensor) or (hasattr(value, "__array_interface__") and getattr(value, "ndim", 0) > 0)


def _tensor(value: Any) -> Tensor:
    return value.detach() if isinstance(value, Tensor) else torch.as_tensor(value)
