"""One checkpoint as a folder: its name appears only when all of it is durable, and it is read only if it is whole.

::

    step-000000012288/
      state.json            the run's state, with place holders for tensors
      model.safetensors     the weights, under their own names
      optimizer.safetensors
      state.safetensors     every other tensor: environments, random streams, hooks
      MANIFEST.json         what it is, and the SHA-256 of every file above
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import mmap
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from io import BufferedReader
from pathlib import Path

from hookloop.checkpoints.manifest import MANIFEST, MAX_MANIFEST_BYTES, FileEntry, Manifest
from hookloop.errors import CheckpointError, CheckpointWriteError, DamagedCheckpointError
from hookloop.storage.disk import Disk

Chunks = Sequence[bytes | memoryview]
Content = mmap.mmap | bytearray

TEMPORARY = ".tmp-"
_BYTES_WORTH_THREADS = 1 << 22
_MARGIN_BYTES = 1 << 16  # for the manifest and the folder itself


def write_folder(
    disk: Disk,
    parent: Path,
    name: str,
    files: Mapping[str, Chunks],
    describe: Callable[[dict[str, FileEntry]], Manifest],
) -> Manifest:
    """Write a checkpoint; once this returns, it survives a power loss. If it raises, nothing of it is left."""
    temporary = parent / f"{TEMPORARY}{name}"
    has_its_name = False
    try:
        clear_away(disk, parent, TEMPORARY)
        _require_room(disk, parent, files)
        disk.make_folder(temporary)
        for file, chunks in files.items():
            disk.write(temporary / file, chunks)
            disk.flush(temporary / file)
        manifest = describe({file: _hashed(chunks) for file, chunks in files.items()})
        disk.write(temporary / MANIFEST, [manifest.encode()])
        disk.flush(temporary / MANIFEST)
        disk.flush_folder(temporary)
        disk.rename(temporary, parent / name)
        has_its_name = True
        disk.flush_folder(parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            if has_its_name:  # nobody can tell whether it would still have it after a power loss
                disk.rename(parent / name, temporary)
            disk.remove(temporary)
        raise CheckpointWriteError(
            f"The checkpoint {name} could not be written: {error}. "
            "Those before it are intact; make room or mend the disk.",
            error.errno,
        ) from error
    return manifest


def clear_away(disk: Disk, folder: Path, *prefixes: str) -> None:
    """Remove what a killed process, or one that could not even clean up, left half done."""
    for name in disk.names(folder):
        if name.startswith(prefixes):
            disk.remove(folder / name)


def read_manifest(folder: Path) -> Manifest:
    """Read what a checkpoint says it is, without looking at its other files."""
    return Manifest.decode(read_small(folder / MANIFEST), str(folder / MANIFEST))


def read_small(path: Path) -> bytes:
    """Read a plain file that describes others, and is never large."""
    with _opened(path) as file:
        content = file.read(MAX_MANIFEST_BYTES + 1)
    if len(content) > MAX_MANIFEST_BYTES:
        raise DamagedCheckpointError(f"{path} has more than {MAX_MANIFEST_BYTES} bytes; no run writes such a file.")
    return content


def read_files(folder: Path, manifest: Manifest, *, max_bytes: int) -> dict[str, Content]:
    """Return the content of all files of a checkpoint, each checked against its hash.

    The files are mapped, not read: a copy of a large checkpoint would cost as much as its hashes.
    """
    _require_listed(folder, manifest, max_bytes)
    contents = {name: _mapped(folder / name, entry) for name, entry in manifest.files.items()}

    def check(name: str) -> None:
        digest = hashlib.sha256(contents[name]).hexdigest()
        if digest != manifest.files[name].sha256:
            raise DamagedCheckpointError(f"{folder / name} was changed after it was written: its hash does not fit.")

    if manifest.total_bytes < _BYTES_WORTH_THREADS:
        for name in contents:
            check(name)
    else:
        large_first = sorted(contents, key=lambda name: -len(contents[name]))
        with ThreadPoolExecutor(os.cpu_count()) as threads:  # a hash of this size lets other threads run
            list(threads.map(check, large_first))
    return contents


def _require_room(disk: Disk, parent: Path, files: Mapping[str, Chunks]) -> None:
    """Refuse to fill a disk to its last byte in vain; others write to it, too."""
    needed = sum(len(chunk) for chunks in files.values() for chunk in chunks) + _MARGIN_BYTES
    free = disk.free_bytes(parent)
    if free is not None and free < needed:
        raise OSError(errno.ENOSPC, f"{needed} bytes are needed and {free} are free")


def _hashed(chunks: Chunks) -> FileEntry:
    digest = hashlib.sha256()
    size = 0
    for chunk in chunks:
        digest.update(chunk)
        size += len(chunk)
    return FileEntry(size, digest.hexdigest())


def _memory(path: Path, size: int) -> bytearray:
    try:
        return bytearray(size)
    except MemoryError as error:  # no damage: on a larger machine it could be read
        raise CheckpointError(f"{path} has {size} bytes, for which this process has no memory.") from error


def _opened(path: Path) -> BufferedReader:
    """Open a plain file of a checkpoint: no link, no pipe, nothing that leads elsewhere."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.EIO):
            raise DamagedCheckpointError(f"{path} is missing or no plain file ({error.strerror}).") from error
        raise  # no rights, too many open files: this says nothing about the checkpoint
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DamagedCheckpointError(f"{path} is no plain file.")
    return os.fdopen(descriptor, "rb")


def _require_listed(folder: Path, manifest: Manifest, max_bytes: int) -> None:
    found, listed = set(os.listdir(folder)) - {MANIFEST}, set(manifest.files)
    if found != listed:
        missing = [f"{name} is missing" for name in sorted(listed - found)]
        extra = [f"{name!a:.120} does not belong there" for name in sorted(found - listed)]
        raise DamagedCheckpointError(f"{folder} is not what its manifest says: {'; '.join([*missing, *extra][:5])}.")
    if manifest.total_bytes > max_bytes:
        raise DamagedCheckpointError(
            f"{folder} claims {manifest.total_bytes} bytes; at most {max_bytes} are read (max_bytes)."
        )


def _mapped(path: Path, entry: FileEntry) -> Content:
    """Return a file's content as memory of our own: what is written to it does not reach the file."""
    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size != entry.bytes:
            raise DamagedCheckpointError(f"{path} has {size} bytes, its manifest says {entry.bytes}.")
        if not size:
            return bytearray()
        try:
            content = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
        except OSError as error:
            if error.errno != errno.ENOMEM:
                raise
            # No damage: on a larger machine it could be read.
            raise CheckpointError(f"{path} has {size} bytes, for which this process has no memory.") from error
    content.madvise(mmap.MADV_WILLNEED)  # from a cold disk, read ahead of the hash
    return content
