"""The few calls by which files reach a disk, and what each has made durable once it returns.

A write alone survives the death of the process, not of the machine. After a power loss a file's content is certain
once the file was flushed, and its name once the folder that holds the name was flushed: two promises, two calls.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol


class Disk(Protocol):
    """The calls by which a checkpoint reaches a disk; few, so that a test can stand in for each."""

    def make_folder(self, folder: Path) -> None:
        """Make one folder in a folder that exists; FileExistsError if the name is taken."""
        ...

    def write(self, path: Path, chunks: Iterable[bytes | memoryview]) -> None:
        """Write a new file, not flushed yet; FileExistsError if the name is taken."""
        ...

    def flush(self, path: Path) -> None:
        """Make a file's content durable."""
        ...

    def flush_folder(self, folder: Path) -> None:
        """Make the names in a folder durable: those made, renamed and removed so far."""
        ...

    def rename(self, old: Path, new: Path) -> None:
        """Give a file or folder another name; FileExistsError if that name is taken."""
        ...

    def remove(self, path: Path) -> None:
        """Remove a file, or a folder with all that is in it, or nothing; a symlink goes, not what it points to."""
        ...

    def names(self, folder: Path) -> list[str]:
        """Return the names in a folder, sorted; none if there is no such folder."""
        ...

    def free_bytes(self, folder: Path) -> int | None:
        """Return how much may still be written; None if the file system does not say."""
        ...


class LocalDisk:
    """The disk of this machine."""

    def make_folder(self, folder: Path) -> None:
        """Make one folder in a folder that exists; FileExistsError if the name is taken."""
        folder.mkdir()

    def write(self, path: Path, chunks: Iterable[bytes | memoryview]) -> None:
        """Write a new file, not flushed yet; FileExistsError if the name is taken.

        A write that fails leaves what it has written: whoever gave the file its temporary name removes it.
        """
        # A buffered file writes whatever exceeds its buffer straight from the caller's memory, and goes on
        # after a short write, of which there is one for every 2 GiB.
        with path.open("xb") as file:
            for chunk in chunks:
                file.write(chunk)

    def flush(self, path: Path) -> None:
        """Make a file's content durable."""
        _flush_path(path)

    def flush_folder(self, folder: Path) -> None:
        """Make the names in a folder durable: those made, renamed and removed so far."""
        flush_folder(folder)

    def rename(self, old: Path, new: Path) -> None:
        """Give a file or folder another name; FileExistsError if that name is taken.

        The look and the rename are two calls: only the holder of a run's lock may rename in its folder.
        """
        if os.path.lexists(new):
            raise FileExistsError(f"{old} cannot be renamed to {new}: that name is taken, and nothing is replaced.")
        old.rename(new)

    def remove(self, path: Path) -> None:
        """Remove a file, or a folder with all that is in it, or nothing; a symlink goes, not what it points to."""
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def names(self, folder: Path) -> list[str]:
        """Return the names in a folder, sorted; none if there is no such folder."""
        try:
            return sorted(os.listdir(folder))
        except FileNotFoundError:
            return []

    def free_bytes(self, folder: Path) -> int | None:
        """Return how much may still be written; None if the file system does not say."""
        usage = shutil.disk_usage(folder)
        return usage.free if usage.total else None


def make_folders(disk: Disk, folder: Path) -> None:
    """Make every level of a folder that is missing, and each durable in its parent before the next is made."""
    missing: list[Path] = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    # Whoever made the deepest level that exists may have been killed before it was durable.
    # A parent that cannot be read is one in which nobody like us makes folders.
    with contextlib.suppress(PermissionError):
        disk.flush_folder(folder.parent)
    for level in reversed(missing):
        try:
            disk.make_folder(level)
        except FileExistsError:
            if not level.is_dir():  # if it is, another process was quicker
                raise
        disk.flush_folder(level.parent)


def flush_folder(folder: Path) -> None:
    """Make the names in a folder durable: they live in the folder, which is flushed apart from its files."""
    _flush_path(folder)


def flush_descriptor(descriptor: int) -> None:
    """Return once what was written to an open file is on the disk itself."""
    full = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: fsync alone stops at the drive's own cache
    if full is not None:
        try:
            fcntl.fcntl(descriptor, full)
        except OSError:  # a file system that knows fsync alone
            pass
        else:
            return
    os.fsync(descriptor)


def _flush_path(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        flush_descriptor(descriptor)
    finally:
        os.close(descriptor)
