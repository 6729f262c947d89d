"""Messages between a pool and one of its workers: a small head over a socket, and whatever is big through memory.

No message fills the socket's buffer, so nobody who sends one waits for the other side: a worker goes on with its next
task while the pool is busy elsewhere, and the pool never hangs on a worker that has stopped.
"""

from __future__ import annotations

import os
import socket
import struct
from dataclasses import dataclass
from enum import IntEnum

from hookloop.pools import memory
from hookloop.pools.packing import empty

MOST_INLINE_BYTES = 8192
_BUFFER_BYTES = 1 << 18
_HEAD = struct.Struct("<bqq?")


class Kind(IntEnum):
    """What a message is about."""

    STATUS = 0
    """To a worker: the memory in which it says what it does."""
    WEIGHTS = 1
    """To a worker: the memory in which weights appear."""
    TASK = 2
    """To a worker: something to compute."""
    READY = 3
    """From a worker: it can take tasks."""
    RESULT = 4
    """From a worker: what a task has given."""
    FAILED = 5
    """From a worker, before it ends: an exception, as text."""


@dataclass(frozen=True, slots=True)
class Message:
    """What has arrived."""

    kind: Kind
    serial: int
    """Of the task it is about."""
    content: memoryview
    descriptor: int = -1
    """Of the file it brought, if the receiver is to keep that."""


class Channel:
    """One end of the connection.

    Args:
        connected: A socket of the family AF_UNIX.
        patience_seconds: How long the rest of a message may take to arrive; None waits for ever.
    """

    def __init__(self, connected: socket.socket, *, patience_seconds: float | None = None) -> None:
        self._socket = connected
        connected.settimeout(patience_seconds)
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            connected.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)

    def fileno(self) -> int:
        """Return the descriptor to wait for."""
        return self._socket.fileno()

    def send(self, kind: Kind, serial: int = -1, parts: list[memoryview] | None = None) -> None:
        """Send a message with this content."""
        parts = parts or []
        size = sum(part.nbytes for part in parts)
        head = memoryview(_HEAD.pack(kind, serial, size, size > MOST_INLINE_BYTES))
        if size <= MOST_INLINE_BYTES:
            self._socket.sendall(b"".join([head, *parts]))
            return
        descriptor = memory.anonymous_file()
        try:
            memory.write_all(descriptor, parts)
            socket.send_fds(self._socket, [head], [descriptor])
        finally:
            os.close(descriptor)

    def send_file(self, kind: Kind, descriptor: int, size: int) -> None:
        """Send memory that both sides keep."""
        socket.send_fds(self._socket, [_HEAD.pack(kind, -1, size, True)], [descriptor])

    def receive(self) -> Message | None:
        """Wait for the next message; None says that the other side has ended."""
        head, descriptors, _, _ = socket.recv_fds(self._socket, _HEAD.size, 1)
        if not head:
            return None
        kind, serial, size, is_file = _HEAD.unpack(head + self._rest(_HEAD.size - len(head)))
        if not is_file:
            return Message(Kind(kind), serial, self._rest(size))
        if kind in (Kind.STATUS, Kind.WEIGHTS):
            return Message(Kind(kind), serial, empty(0), descriptors[0])
        content = empty(size)
        try:
            memory.read_all(descriptors[0], content)
        finally:
            os.close(descriptors[0])
        return Message(Kind(kind), serial, content)

    def close(self) -> None:
        """Say nothing more; the other side sees that."""
        self._socket.close()

    def _rest(self, size: int) -> memoryview:
        content = empty(size)
        done = 0
        while done < size:
            received = self._socket.recv_into(content[done:])
            if not received:
                raise EOFError(f"The other side ended {size - done} bytes before the end of a message.")
            done += received
        return content
