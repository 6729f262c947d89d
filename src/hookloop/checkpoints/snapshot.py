"""The one copy that training pays for: the state of a run, out of training's reach."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from hookloop.checkpoints.tensor_file import NAMES_OF_TYPES, TYPE_NAMES, Layout
from hookloop.checkpoints.tree import Disassembly, Parts
from hookloop.core.plain import require_plain
from hookloop.errors import HookStateError, NonFiniteError

Plain = Any

WHOLE_PART = "model"
PIECE_BYTES = 1 << 25
MAX_PIECES = 16


class Arena:
    """One piece of memory for all tensors of one file; used again as long as their shapes stay the same.

    Allocating it anew for each checkpoint would cost more than the copy: the system hands out memory page by page,
    each at its first touch.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.memory = torch.empty(layout.data_bytes, dtype=torch.uint8)
        self._views = {name: self._view(name) for name in layout.places}

    def copy(self, tensors: Mapping[str, Any]) -> None:
        """Copy the tensors in."""
        for name, view in self._views.items():
            tensor = tensors[name]
            if isinstance(tensor, np.ndarray):
                np.copyto(view.numpy(), tensor)  # by numpy: torch takes no array that is read only or turned round
            else:
                view.copy_(tensor)

    def content(self, metadata: dict[str, str]) -> list[bytes | memoryview]:
        """Return the bytes of the file: a header, and this memory itself."""
        return [self.layout.header(metadata), self.memory.numpy().data]

    def non_finite(self) -> list[str]:
        """Return the names of the tensors that hold a NaN or an infinity."""
        return [name for name, view in self._views.items() if view.is_floating_point() and not _is_finite(view)]

    def _view(self, name: str) -> torch.Tensor:
        place = self.layout.places[name]
        dtype = getattr(torch, NAMES_OF_TYPES[place.type])
        if place.begin == place.end:
            return torch.empty(place.shape, dtype=dtype)
        return self.memory[place.begin : place.end].view(dtype).view(place.shape)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A state that training can no longer change, ready to be written."""

    skeleton: Plain
    arenas: dict[str, Arena]
    """By the name of the file."""

    def files(self) -> dict[str, list[bytes | memoryview]]:
        """Return the content of each file, by name."""
        text = json.dumps(self.skeleton, allow_nan=False, separators=(",", ":")).encode()
        return {"state.json": [text], **{file: arena.content({"format": "pt"}) for file, arena in self.arenas.items()}}

    def require_finite(self, parts: Iterable[str]) -> None:
        """Refuse a snapshot with a NaN or an infinity in one of these parts: nobody can go on from it."""
        for part in parts:
            broken = [name for arena in self._of(part) for name in arena.non_finite()]
            if broken:
                raise NonFiniteError(
                    f"The checkpoint was not written: the {part} holds NaN or infinity in {', '.join(broken[:5])}"
                    f"{f' and {len(broken) - 5} more' if len(broken) > 5 else ''}. "
                    "Resume from the checkpoint before, with a smaller learning rate."
                )

    def _of(self, part: str) -> list[Arena]:
        return [arena for file, arena in self.arenas.items() if file.partition(".")[0].partition("-")[0] == part]


class SnapshotBuffers:
    """Takes snapshots into memory that is kept from one to the next; the one before must be done with."""

    def __init__(self) -> None:
        self._arenas: dict[str, Arena] = {}

    def take(self, state: Plain, parts: Parts) -> Snapshot:
        """Copy a state; its containers are copied too, so nothing in the snapshot is shared with training."""
        require_plain(state, "")  # here, where the place is known; the writer's thread would only say what, not where
        taken = Disassembly(state, parts)
        used: dict[str, Arena] = {}
        for part, tensors in taken.tensors.items():
            for file, layout in _files(part, tensors):
                used[file] = self._arena(file, layout)
                used[file].copy(tensors)
        self._arenas = used  # those of files that are no longer written go
        return Snapshot(taken.skeleton, dict(used))

    def reserve(self, state: Plain, parts: Parts) -> None:
        """Get hold of the memory for the snapshots of such a state before the first one is due."""
        for part, tensors in Disassembly(state, parts).tensors.items():
            for file, layout in _files(part, tensors):
                self._arena(file, layout).memory.zero_()

    def _arena(self, file: str, layout: Layout) -> Arena:
        arena = self._arenas.get(file)
        if arena is None or arena.layout != layout:
            arena = self._arenas[file] = Arena(layout)
        return arena


def _files(part: str, tensors: Mapping[str, Any]) -> list[tuple[str, Layout]]:
    """Return the files of a part and what lies in each: the weights in one, all else in pieces.

    Pieces are hashed side by side when they are read; the weights stay together, for others to use.
    """
    kinds = {name: _kind(name, tensor) for name, tensor in tensors.items()}
    most = max(PIECE_BYTES, sum(tensor.nbytes for tensor in tensors.values()) // MAX_PIECES)
    groups: list[dict[str, tuple[str, tuple[int, ...]]]] = [{}]
    size = 0
    for name in sorted(kinds):
        bytes_ = tensors[name].nbytes
        if part != WHOLE_PART and groups[-1] and size + bytes_ > most:
            groups.append({})
            size = 0
        groups[-1][name] = kinds[name]
        size += bytes_
    layouts = [Layout.of(group) for group in groups]
    if len(layouts) == 1:
        return [(f"{part}.safetensors", layouts[0])]
    return [(f"{part}-{number:05d}.safetensors", layout) for number, layout in enumerate(layouts, start=1)]


def _kind(name: str, tensor: Any) -> tuple[str, tuple[int, ...]]:
    dtype = str(tensor.dtype).removeprefix("torch.")
    if dtype not in TYPE_NAMES:
        raise HookStateError(
            f"{name} is a tensor of {dtype}, which a checkpoint cannot hold; it can: {', '.join(TYPE_NAMES)}."
        )
    return TYPE_NAMES[dtype], tuple(tensor.shape)


def _is_finite(tensor: torch.Tensor) -> bool:
    # A finite sum proves that all terms are; only an infinite one needs the look at each, as it may be an overflow.
    return bool(torch.isfinite(tensor.sum())) or bool(torch.isfinite(tensor).all())
