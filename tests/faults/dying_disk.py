"""A disk whose process dies at a chosen call: before it, half-way through it, or after it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

from hookloop.storage.disk import LocalDisk

Moment = Literal["before", "halfway", "after"]
DIVISIBLE = ("write", "remove")


class Instant(NamedTuple):
    """When to die: at a moment of the n-th call that changes the disk, counted from 0."""

    call: int
    moment: Moment


class DyingDisk(LocalDisk):
    """Kills its own process at one instant; with None it lives, and ``calls`` says which there are."""

    def __init__(self, instant: Instant | None = None) -> None:
        self.calls: list[str] = []
        self._instant = instant

    def make_folder(self, folder: Path) -> None:
        self._at("make_folder", "before")
        super().make_folder(folder)
        self._after()

    def write(self, path: Path, chunks: Iterable[bytes | memoryview]) -> None:
        content = b"".join(bytes(chunk) for chunk in chunks)
        if self._at("write", "before") == "halfway":
            path.write_bytes(content[: len(content) // 2])
            _die()
        super().write(path, [content])
        self._after()

    def flush(self, path: Path) -> None:
        self._at("flush", "before")
        super().flush(path)
        self._after()

    def flush_folder(self, folder: Path) -> None:
        self._at("flush_folder", "before")
        super().flush_folder(folder)
        self._after()

    def rename(self, old: Path, new: Path) -> None:
        self._at("rename", "before")
        super().rename(old, new)
        self._after()

    def remove(self, path: Path) -> None:
        if self._at("remove", "before") == "halfway":
            for file in sorted(path.glob("*"))[::2]:
                file.unlink()
            _die()
        super().remove(path)
        self._after()

    def _at(self, call: str, moment: Moment) -> Moment | None:
        """Count a call, and die if it is the one; return the moment if it is the one, but later."""
        self.calls.append(call)
        if self._instant is None or self._instant.call != len(self.calls) - 1:
            return None
        if self._instant.moment == moment:
            _die()
        return self._instant.moment

    def _after(self) -> None:
        if self._instant == (len(self.calls) - 1, "after"):
            _die()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()  # a thread may run on for a moment
