"""What tests of checkpoints share: small states, disks that fail or wait, and a comparison of every bit."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hookloop.checkpoints import CheckpointManager, Description, Retention
from hookloop.storage.disk import LocalDisk

PARTS = {"model": ("model",), "optimizer": ("optimizer",)}
EVENT_SECONDS = 60
"""How long a test waits for an event that must come; a test that waits in vain fails."""


def state_at(step: int) -> dict[str, Any]:
    """Return the state of a small run; no two steps have the same."""
    return {
        "model": {"weight": torch.full((3, 4), float(step)), "bias": torch.arange(4.0) + step},
        "optimizer": {"momentum": torch.full((3, 4), step / 3), "steps": step},
        "envs": {"obs": np.arange(6, dtype=np.int32) + step, "seeds": [step, step + 1]},
        "counters": {"step": step, "rate": 0.1 * step, "note": f"step {step}"},
    }


def about(step: int, **fields: Any) -> Description:
    """Return what the manifest says of a step."""
    return Description(step=step, clocks={"epochs": step}, run_id="run", **fields)


def manager_in(folder: Path, **options: Any) -> CheckpointManager:
    """Return a manager that writes at once and keeps everything, unless told otherwise."""
    return CheckpointManager(folder, **{"asynchronous": False, "retention": Retention(keep_last=1000), **options})


def save(manager: CheckpointManager, *steps: int, **fields: Any) -> None:
    """Save these steps."""
    for step in steps:
        manager.save(state_at(step), about(step, **fields), parts=PARTS)


def saved(folder: Path, *steps: int, **options: Any) -> Path:
    """Write checkpoints of these steps, and return their folder."""
    with manager_in(folder, **options) as manager:
        save(manager, *steps)
    return folder


def names_in(folder: Path) -> list[str]:
    """Return what is in a folder of checkpoints, but for the lock."""
    return sorted(path.name for path in folder.iterdir() if path.name != "lock")


def is_same(left: Any, right: Any) -> bool:
    """Tell whether two states are of the same types and bits; a tuple comes back as a list."""
    if isinstance(left, Mapping):
        return (
            isinstance(right, Mapping) and list(left) == list(right) and all(is_same(left[k], right[k]) for k in left)
        )
    if isinstance(left, list | tuple):
        return isinstance(right, list) and len(left) == len(right) and all(map(is_same, left, right))
    if isinstance(left, torch.Tensor):
        return isinstance(right, torch.Tensor) and (left.dtype, left.shape) == (right.dtype, right.shape) and (
            bits(left) == bits(right)
        )  # fmt: skip
    if isinstance(left, np.ndarray | np.generic):
        is_like = type(left) is type(right) and left.dtype == right.dtype and left.shape == right.shape
        return is_like and left.tobytes() == right.tobytes()
    return type(left) is type(right) and repr(left) == repr(right)


def bits(tensor: torch.Tensor) -> bytes:
    """Return the bytes of a tensor, in order."""
    flat = tensor.detach().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


class FailingDisk(LocalDisk):
    """A disk on which calls fail as a test decides: ``fault(call, path)`` returns an error number, or None."""

    def __init__(self, fault: Callable[[str, Path], int | None]) -> None:
        self._fault = fault

    def make_folder(self, folder: Path) -> None:
        self._fail("make_folder", folder)
        super().make_folder(folder)

    def write(self, path: Path, chunks: Iterable[bytes | memoryview]) -> None:
        self._fail("write", path)
        super().write(path, chunks)

    def flush(self, path: Path) -> None:
        self._fail("flush", path)
        super().flush(path)

    def flush_folder(self, folder: Path) -> None:
        self._fail("flush_folder", folder)
        super().flush_folder(folder)

    def rename(self, old: Path, new: Path) -> None:
        self._fail("rename", new)
        super().rename(old, new)

    def _fail(self, call: str, path: Path) -> None:
        number = self._fault(call, path)
        if number is not None:
            raise OSError(number, errno.errorcode[number], str(path))


class WaitingDisk(LocalDisk):
    """A slow disk: each write of a manifest waits until it is let go."""

    def __init__(self) -> None:
        self.has_begun = threading.Event()
        self.may_go_on = threading.Event()
        self.most_at_once = 0
        self._at_once = 0

    def write(self, path: Path, chunks: Iterable[bytes | memoryview]) -> None:
        if path.name == "MANIFEST.json":
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            self.has_begun.set()
            assert self.may_go_on.wait(EVENT_SECONDS), "nobody let the disk go on"
            self._at_once -= 1
        super().write(path, chunks)
