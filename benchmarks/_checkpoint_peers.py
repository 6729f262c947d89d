"""Everybody who saves and loads in ``checkpoint.py``, and the state that they save.

Run as a script it is a process that saves once, for the price of a run's very first checkpoint:
``python _checkpoint_peers.py FOLDER SIZE THREADS plain|reserved``.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from _measure import is_importable

State = dict[str, Any]

COPY, COPY_AGAIN = "copy into warm memory", "the same again"
OURS, OURS_AGAIN, OURS_SYNC = "hookloop", "hookloop again", "hookloop, synchronous"
FIRST, FIRST_RESERVED = "hookloop, very first save", "the same after reserve"
TORCH, TORCH_SYNCED, SAFETENSORS = "torch.save", "torch.save, then fsync", "safetensors"
LIGHTNING, LIGHTNING_ASYNC = "Lightning", "Lightning, asynchronous"
DCP, DCP_ASYNC, DCP_KEPT = "DCP", "DCP, async_save", "DCP, async_save, stager kept"
TORCH_LOAD, TORCH_MAPPED = "torch.load", "torch.load, mmap"
PARTS = {"model": ("model",), "optimizer": ("optimizer",)}


@dataclass(frozen=True, slots=True)
class Size:
    """A GPT by its dimensions; heads do not change its shapes."""

    name: str
    vocabulary: int
    width: int
    layers: int
    context: int = 1_024

    def shapes(self) -> dict[str, tuple[int, ...]]:
        width = self.width
        shapes: dict[str, tuple[int, ...]] = {
            "wte.weight": (self.vocabulary, width),
            "wpe.weight": (self.context, width),
        }
        for layer in range(self.layers):
            of_layer = {
                "ln_1": (width,),
                "attn.c_attn": (3 * width, width),
                "attn.c_proj": (width, width),
                "ln_2": (width,),
                "mlp.c_fc": (4 * width, width),
                "mlp.c_proj": (width, 4 * width),
            }
            for name, shape in of_layer.items():
                shapes[f"h.{layer}.{name}.weight"] = shape
                shapes[f"h.{layer}.{name}.bias"] = shape[:1]
        return shapes | {"ln_f.weight": (width,), "ln_f.bias": (width,)}


SIZES = {
    size.name: size for size in (Size("1M", 4_000, 128, 2), Size("10M", 20_000, 256, 6), Size("100M", 20_000, 768, 12))
}


def make_state(size: Size) -> State:
    """Return weights and Adam's memory of them, as ``state_dict`` nests them; every key is a string."""
    torch.manual_seed(0)
    model = {name: torch.randn(shape) for name, shape in size.shapes().items()}
    optimizer = {
        str(index): {
            "step": torch.tensor(1_000.0),
            "exp_avg": torch.randn_like(weight),
            "exp_avg_sq": torch.rand_like(weight),
        }
        for index, weight in enumerate(model.values())
    }
    return {"model": model, "optimizer": {"state": optimizer}}


def tensors_of(state: State) -> Iterator[torch.Tensor]:
    """Return all tensors of a state; two states of one size give them in the same order."""
    for value in state.values():
        if isinstance(value, torch.Tensor):
            yield value
        else:
            yield from tensors_of(value)


def empty_like(state: State) -> State:
    """Return a state of the same shapes, its memory touched."""
    return {
        key: torch.zeros_like(value) if isinstance(value, torch.Tensor) else empty_like(value)
        for key, value in state.items()
    }


def copy_state(source: State, into: State) -> None:
    """Copy into the tensors of a state, whatever order the keys of the source have."""
    for key, value in into.items():
        if isinstance(value, torch.Tensor):
            value.copy_(source[key])
        else:
            copy_state(source[key], value)


def flat(state: State, prefix: str = "") -> dict[str, torch.Tensor]:
    """Return the tensors of a state by their paths, as safetensors wants them."""
    named: dict[str, torch.Tensor] = {}
    for key, value in state.items():
        path = f"{prefix}{key}"
        named |= {path: value} if isinstance(value, torch.Tensor) else flat(value, f"{path}.")
    return named


def flush_tree(folder: Path) -> None:
    """Make everything in a folder durable, names included."""
    for path in [*folder.rglob("*"), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class Saver:
    """One way to save and load; ``save`` returns when training may go on, ``finish`` when all is written."""

    fsyncs = "no"
    """Whether what is written is flushed to the disk without being asked: yes, no, or the files alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def save(self, state: State) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        """Wait until everything is written; a synchronous contender has nothing to wait for."""

    def load(self, into: State) -> None:
        raise NotImplementedError

    def clear(self) -> None:
        """Remove what was saved."""
        shutil.rmtree(self.folder)
        self.folder.mkdir()

    def close(self) -> None:
        """Give back memory and threads."""


class MemoryCopy(Saver):
    """The yardstick: each tensor copied into memory that was touched before."""

    fsyncs = "no file"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._kept: State | None = None

    def save(self, state: State) -> None:
        if self._kept is None:
            self._kept = empty_like(state)
        copy_state(state, self._kept)

    def load(self, into: State) -> None:
        assert self._kept is not None
        copy_state(self._kept, into)

    def close(self) -> None:
        self._kept = None


class Hookloop(Saver):
    fsyncs = "yes"

    def __init__(self, folder: Path, *, asynchronous: bool = True) -> None:
        from hookloop.checkpoints import CheckpointManager, Description

        super().__init__(folder)
        self._manager = CheckpointManager(folder, asynchronous=asynchronous)
        self._describe = Description
        self._saves = 0

    def reserve(self, state: State) -> None:
        self._manager.reserve(state, parts=PARTS)
        self._manager.collect(wait=True)

    def save(self, state: State) -> None:
        self._saves += 1
        if not self._manager.save(state, self._describe(step=self._saves, run_id="bench"), parts=PARTS):
            raise RuntimeError(f"hookloop left out save {self._saves}.")

    def finish(self) -> None:
        self._manager.collect(wait=True)

    def load(self, into: State) -> None:
        copy_state(self._manager.load()[1], into)

    def clear(self) -> None:
        for name in self._manager.store.names():
            self._manager.store.delete(name)

    def close(self) -> None:
        self._manager.close()


class TorchSave(Saver):
    def __init__(self, folder: Path, *, then_syncs: bool = False) -> None:
        super().__init__(folder)
        self.path = folder / "state.pt"
        self._then_syncs = then_syncs
        if then_syncs:
            self.fsyncs = "yes"

    def save(self, state: State) -> None:
        torch.save(state, self.path)
        if self._then_syncs:
            flush_tree(self.folder)

    def load(self, into: State) -> None:
        copy_state(torch.load(self.path, weights_only=True), into)

    def load_mapped(self, into: State) -> None:
        copy_state(torch.load(self.path, weights_only=True, mmap=True), into)


class Safetensors(Saver):
    def __init__(self, folder: Path) -> None:
        from safetensors.torch import load_file, save_file

        super().__init__(folder)
        self._path = folder / "state.safetensors"
        self._save, self._load = save_file, load_file

    def save(self, state: State) -> None:
        self._save(flat(state), self._path)

    def load(self, into: State) -> None:
        loaded = self._load(self._path)
        for name, tensor in flat(into).items():
            tensor.copy_(loaded[name])


class Lightning(Saver):
    """The plugin that the Trainer saves and loads with, without the Trainer around it."""

    def __init__(self, folder: Path, *, asynchronous: bool = False) -> None:
        from lightning.pytorch.plugins.io import AsyncCheckpointIO, TorchCheckpointIO

        super().__init__(folder)
        self._path = folder / "state.ckpt"
        self._is_asynchronous = asynchronous
        self._io = AsyncCheckpointIO(TorchCheckpointIO()) if asynchronous else TorchCheckpointIO()

    def save(self, state: State) -> None:
        self._io.save_checkpoint(state, self._path)

    def finish(self) -> None:
        if self._is_asynchronous:
            self._io.teardown()

    def load(self, into: State) -> None:
        copy_state(self._io.load_checkpoint(self._path, weights_only=True), into)


class DistributedCheckpoint(Saver):
    """``torch.distributed.checkpoint`` in one process.

    Args:
        folder: Where to write.
        asynchronous: Save with ``async_save``.
        keeps_stager: Hand it the same stager each time, which keeps its memory; by default it makes one per save.
    """

    fsyncs = "files"

    def __init__(self, folder: Path, *, asynchronous: bool = False, keeps_stager: bool = False) -> None:
        import torch.distributed.checkpoint as checkpoint
        from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions

        super().__init__(folder)
        self._module = checkpoint
        self._is_asynchronous = asynchronous
        self._stager = DefaultStager(StagingOptions(False, False, False, False)) if keeps_stager else None
        self._writing: Any = None

    def save(self, state: State) -> None:
        if self._is_asynchronous:
            self._writing = self._module.async_save(
                state, checkpoint_id=self.folder, async_stager=self._stager, no_dist=True
            )
        else:
            self._module.save(state, checkpoint_id=self.folder, no_dist=True)

    def finish(self) -> None:
        if self._writing is not None:
            self._writing.result()
            self._writing = None

    def load(self, into: State) -> None:
        self._module.load(into, checkpoint_id=self.folder, no_dist=True)

    def close(self) -> None:
        if self._stager is not None:
            self._stager.close()


@dataclass(frozen=True, slots=True)
class Entry:
    """A contender by name; ``build`` takes the folder that it has for itself."""

    name: str
    build: Callable[[Path], Saver]
    module: str = "torch"
    is_synchronous_peer: bool = False
    is_asynchronous: bool = False

    @property
    def is_installed(self) -> bool:
        return is_importable(self.module)


SAVERS = (
    Entry(COPY, MemoryCopy),
    Entry(COPY_AGAIN, MemoryCopy),
    Entry(OURS, Hookloop, "hookloop", is_asynchronous=True),
    Entry(OURS_AGAIN, Hookloop, "hookloop"),
    Entry(OURS_SYNC, partial(Hookloop, asynchronous=False), "hookloop"),
    Entry(TORCH, TorchSave, is_synchronous_peer=True),
    Entry(TORCH_SYNCED, partial(TorchSave, then_syncs=True), is_synchronous_peer=True),
    Entry(SAFETENSORS, Safetensors, "safetensors", is_synchronous_peer=True),
    Entry(LIGHTNING, Lightning, "lightning", is_synchronous_peer=True),
    Entry(LIGHTNING_ASYNC, partial(Lightning, asynchronous=True), "lightning", is_asynchronous=True),
    Entry(DCP, DistributedCheckpoint, is_synchronous_peer=True),
    Entry(DCP_ASYNC, partial(DistributedCheckpoint, asynchronous=True), is_asynchronous=True),
    Entry(DCP_KEPT, partial(DistributedCheckpoint, asynchronous=True, keeps_stager=True), is_asynchronous=True),
)
LOADERS: dict[str, tuple[str, str]] = {
    OURS: (OURS, "load"),
    OURS_AGAIN: (OURS, "load"),
    SAFETENSORS: (SAFETENSORS, "load"),
    TORCH_LOAD: (TORCH, "load"),
    TORCH_MAPPED: (TORCH, "load_mapped"),
    LIGHTNING: (LIGHTNING, "load"),
    DCP: (DCP, "load"),
}
"""By the name of a row: whose files it reads, and by which method."""


def quiet_peers() -> None:
    """Silence what the peers warn of on every call and what this benchmark means to do."""
    warnings.filterwarnings("ignore", module=r"torch\.distributed\.checkpoint")
    warnings.filterwarnings("ignore", module=r"torch\.distributed\._.*")


def save_first(folder: Path, size: Size, *, threads: int, is_reserved: bool) -> dict[str, float]:
    """Save once in a process that never saved before."""
    torch.set_num_threads(threads)
    state = make_state(size)
    saver = Hookloop(folder)
    if is_reserved:
        saver.reserve(state)
    started = perf_counter()
    saver.save(state)
    stall = perf_counter() - started
    saver.finish()
    finished = perf_counter() - started
    saver.close()
    return {"stall": stall, "finished": finished, "durable": finished}


if __name__ == "__main__":
    place, size_name, thread_count, kind = sys.argv[1:]
    print(
        json.dumps(save_first(Path(place), SIZES[size_name], threads=int(thread_count), is_reserved=kind == "reserved"))
    )
