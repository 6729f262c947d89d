"""Weights in memory that all workers see, by version: written in turn to two places, so that one is always whole.

The file begins with a head, then what is where, then the two places. A writer fills the place that is not the newest
and then says that it is. A reader copies the newest and looks again: if the version or the sum of all words has
changed, the writer was faster by two versions, and the reader begins anew. Neither waits for the other.
"""

from __future__ import annotations

import json
import math
import mmap
import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hookloop.pools import memory

_ALIGNMENT = 64
_HEAD_WORDS = 8
_NEWEST, _LAYOUT_BYTES, _VERSIONS, _SUMS = 0, 1, slice(2, 4), slice(4, 6)
_BEING_WRITTEN = -2
_MOST_ATTEMPTS = 1000


@dataclass(frozen=True, slots=True)
class Part:
    """Where a tensor lies in a place, and what it is."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int


def layout_of(tensors: Mapping[str, Tensor]) -> tuple[Part, ...]:
    """Lay the tensors out one after the other."""
    parts: list[Part] = []
    at = 0
    for name, tensor in tensors.items():
        parts.append(Part(name, str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), at))
        at += -(-tensor.numel() * tensor.element_size() // _ALIGNMENT) * _ALIGNMENT
    return tuple(parts)


class WeightsWriter:
    """Owns the memory and publishes in it.

    Args:
        tensors: Like those to be published: names, types and shapes count.
    """

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self.layout = layout_of(tensors)
        described = json.dumps([(part.name, part.dtype, part.shape, part.start) for part in self.layout]).encode()
        size = sum(-(-tensor.numel() * tensor.element_size() // _ALIGNMENT) for tensor in tensors.values()) * _ALIGNMENT
        self.size = _start_of_places(len(described)) + 2 * size
        self.descriptor = memory.anonymous_file(self.size)
        shared = mmap.mmap(self.descriptor, self.size)
        self._head = np.frombuffer(shared, np.int64, _HEAD_WORDS)
        self._head[_NEWEST], self._head[_LAYOUT_BYTES] = 1, len(described)
        self._versions, self._sums = self._head[_VERSIONS], self._head[_SUMS]
        self._versions[:] = _BEING_WRITTEN
        shared[_HEAD_WORDS * 8 : _HEAD_WORDS * 8 + len(described)] = described
        self._places = _places_of(np.frombuffer(shared, np.uint8), len(described))
        self._views = [tensors_of(place, self.layout) for place in self._places]

    def publish(self, version: int, tensors: Mapping[str, Tensor]) -> None:
        """Write newer weights and make them the newest."""
        place = 1 - int(self._head[_NEWEST])
        self._versions[place] = _BEING_WRITTEN
        for name, view in self._views[place].items():
            view.copy_(tensors[name].detach())
        self._sums[place] = sum_of(self._places[place])
        self._versions[place] = version
        self._head[_NEWEST] = place

    def close(self) -> None:
        """Let go of the memory; it stays as long as a worker uses it."""
        os.close(self.descriptor)


class WeightsReader:
    """Sees what a writer publishes, in another process.

    Args:
        descriptor: Of the memory; it is closed.
    """

    def __init__(self, descriptor: int) -> None:
        shared = mmap.mmap(descriptor, os.fstat(descriptor).st_size, access=mmap.ACCESS_READ)
        os.close(descriptor)
        self._head = np.frombuffer(shared, np.int64, _HEAD_WORDS)
        self._versions, self._sums = self._head[_VERSIONS], self._head[_SUMS]
        layout_bytes = int(self._head[_LAYOUT_BYTES])
        described = json.loads(shared[_HEAD_WORDS * 8 : _HEAD_WORDS * 8 + layout_bytes])
        layout = tuple(Part(name, dtype, tuple(shape), start) for name, dtype, shape, start in described)
        self._places = _places_of(np.frombuffer(shared, np.uint8), layout_bytes)
        self._copy = np.empty_like(self._places[0])
        self._tensors = tensors_of(self._copy, layout)

    @property
    def newest(self) -> int:
        """The version that a read would give, or an older one's place that is being written at this moment."""
        return int(self._versions[self._head[_NEWEST]])

    def read(self) -> tuple[int, dict[str, Tensor]]:
        """Return the newest weights, whole; the tensors are used again by the next read."""
        for _ in range(_MOST_ATTEMPTS):
            place = int(self._head[_NEWEST])
            version, expected = int(self._versions[place]), int(self._sums[place])
            np.copyto(self._copy, self._places[place])
            if version >= 0 and version == self._versions[place] and expected == sum_of(self._copy):
                return version, self._tensors
        raise RuntimeError(
            f"Weights were overwritten {_MOST_ATTEMPTS} times while they were read; publish them less often."
        )


def sum_of(words: np.ndarray) -> int:
    """Return the sum of all words, without the carry: enough to tell whole weights from half-written ones."""
    return int(np.add.reduce(words.view(np.int64)))


def tensors_of(place: np.ndarray, layout: tuple[Part, ...]) -> dict[str, Tensor]:
    """Return tensors that use this memory."""
    found: dict[str, Tensor] = {}
    for part in layout:
        dtype: torch.dtype = getattr(torch, part.dtype)
        count = math.prod(part.shape)
        if not count:  # there is no memory to use
            found[part.name] = torch.empty(part.shape, dtype=dtype)
            continue
        flat = torch.from_numpy(place[part.start : part.start + count * dtype.itemsize])
        found[part.name] = flat.view(dtype).reshape(part.shape)
    return found


def _start_of_places(layout_bytes: int) -> int:
    return -(-(_HEAD_WORDS * 8 + layout_bytes) // _ALIGNMENT) * _ALIGNMENT


def _places_of(shared: np.ndarray, layout_bytes: int) -> list[np.ndarray]:
    return np.split(shared[_start_of_places(layout_bytes) :], 2)
