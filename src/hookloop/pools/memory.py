"""Memory that processes share and that has no name: when the last of them ends, however it ends, it is gone."""

from __future__ import annotations

import os
import tempfile


def anonymous_file(size: int = 0) -> int:
    """Return the descriptor of a file without a name, in memory where the system can; the caller closes it."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("hookloop", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    if size:
        os.ftruncate(descriptor, size)
    return descriptor


def write_all(descriptor: int, parts: list[memoryview]) -> None:
    """Write the parts one after the other."""
    for part in parts:
        while part.nbytes:
            part = part[os.write(descriptor, part) :]


def read_all(descriptor: int, into: memoryview) -> None:
    """Fill the memory with the beginning of a file."""
    done = 0
    while done < into.nbytes:
        read = os.preadv(descriptor, [into[done:]], done)
        if not read:
            raise EOFError(f"A file of shared memory ends after {done} bytes; {into.nbytes} were announced.")
        done += read
