"""One process at a time writes to a run: a lock that the kernel releases however its holder ends."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shlex
import sys
import time
import weakref
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from hookloop.errors import RunLockedError
from hookloop.storage.disk import LocalDisk, make_folders

LOCK_NAME = "lock"

_MOST_NOTE_BYTES = 4096
_MOST_COMMAND_LETTERS = 300
_TRIES = 10
_SECONDS_BETWEEN_TRIES = 0.02


class RunLock:
    """The right to write to a run's folder, held until it is released or its holder's process ends.

    The lock is on an open file, ``folder/lock``, which stays when the lock goes: were it deleted, two processes
    could each hold a lock on a file of that name. What stands in it says who holds the lock, and decides nothing.
    A forked child does not hold its parent's lock.

    Example::

        with RunLock(folder):
            ...  # no other process is here
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock, making the folder if need be; RunLockedError, which names the holder, if it is taken."""
        make_folders(LocalDisk(), self._folder)
        # Python opens every file so that it is closed in programs this one starts.
        descriptor = os.open(self._folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            _lock(descriptor, self._folder)
            _write_note(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        _held.add(self)

    def release(self) -> None:
        """Give the lock back; nothing happens if it is not held."""
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        _held.discard(self)
        try:
            os.ftruncate(descriptor, 0)  # nobody holds it, so nobody is named
            # Closing would do, but for a child that is between its fork and its exec and has the file open too.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        finally:
            os.close(descriptor)

    def __enter__(self) -> RunLock:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _forget(self) -> None:
        """Drop the copy a forked child has of the open file: only closed, for unlocking would unlock the parent's."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


_held: weakref.WeakSet[RunLock] = weakref.WeakSet()


def _forget_all() -> None:
    for lock in list(_held):
        lock._forget()
    _held.clear()


# The lock lasts as long as any process has the file open. A worker that outlives a killed trainer must not keep it.
os.register_at_fork(after_in_child=_forget_all)


def require_free(folder: Path) -> None:
    """Raise RunLockedError, which names the holder, if a process holds the folder's lock; change nothing."""
    try:
        descriptor = os.open(folder / LOCK_NAME, os.O_RDONLY | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        return
    try:
        _lock(descriptor, folder, fcntl.LOCK_SH)  # shared, for the moment: those who ask do not disturb each other
    finally:
        os.close(descriptor)


def _lock(descriptor: int, folder: Path, kind: int = fcntl.LOCK_EX) -> None:
    note = None
    for _ in range(_TRIES):
        if _try_to_lock(descriptor, folder, kind):
            return
        # The note may be torn, or still be that of a holder that was killed: a holder writes it just after it has
        # the lock. And whoever only asked whether the folder is free has let go by the next try.
        note = _read_note(descriptor)
        if note is not None and _may_be_alive(note):
            break
        time.sleep(_SECONDS_BETWEEN_TRIES)
    raise RunLockedError(
        f"The run folder {folder} is in use by {_described(note)}. One process at a time may write to a run: "
        "wait until that one ends, stop it, or choose another folder."
    )


def _try_to_lock(descriptor: int, folder: Path, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        error.add_note(f"The run folder {folder} must be on a file system that has locks, as local disks do.")
        raise
    return True


def _write_note(descriptor: int) -> None:
    """Say who holds the lock, for those who are refused."""
    note = {
        "pid": os.getpid(),
        "host": os.uname().nodename,
        "command": shlex.join(sys.orig_argv)[:_MOST_COMMAND_LETTERS],
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    content = json.dumps(note).encode() + b"\n"
    with contextlib.suppress(OSError):  # on a full disk the lock is as good without its note
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, content, 0)


def _described(note: dict[str, Any] | None) -> str:
    """Return who holds the lock, in words."""
    if note is None:
        return "a process that left no readable note of itself"
    pid, host, since, command = (_printable(note.get(key, "?")) for key in ("pid", "host", "since", "command"))
    return f"process {pid} on {host} since {since} (command: {command})"


def _read_note(descriptor: int) -> dict[str, Any] | None:
    try:
        note = json.loads(os.pread(descriptor, _MOST_NOTE_BYTES, 0))
    except (ValueError, RecursionError):
        return None
    return note if isinstance(note, dict) else None


def _may_be_alive(note: dict[str, Any]) -> bool:
    pid = note.get("pid")
    if note.get("host") != os.uname().nodename or not isinstance(pid, int) or not 0 < pid < 1 << 31:
        return True  # nothing can be said from here
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _printable(value: object) -> str:
    """Return a value of a note as it may be shown: whoever can write the file chose it."""
    text = str(value)[:_MOST_COMMAND_LETTERS]
    return "".join(letter if letter.isprintable() else "?" for letter in text)
