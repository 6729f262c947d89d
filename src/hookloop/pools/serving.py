"""What runs in a worker's process: it takes weights and tasks, and answers, until the pool has nothing more to say."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import socket
import sys
import threading
import time
import traceback
from multiprocessing.connection import wait
from types import FrameType

import torch

from hookloop.pools.channel import Channel, Kind, Message
from hookloop.pools.packing import pack, unpack
from hookloop.pools.protocol import MakePerformer, Performer
from hookloop.pools.status import NO_TASK, Phase, StatusRow, rows_of
from hookloop.pools.weights import WeightsReader

NO_WEIGHTS = -1


def serve(number: int, connected: socket.socket, make: bytes) -> None:
    """Be worker ``number``: compute what arrives at this end of a connection.

    Args:
        number: Which row of the status board is this worker's.
        connected: Its end of the connection.
        make: The pickled function that makes the performer.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the pool's process decides what it means
    signal.signal(signal.SIGTERM, _leave)
    end_with_the_pool()
    torch.set_num_threads(1)
    channel = Channel(connected)
    worker = Worker(number, channel)
    try:
        worker.run(pickle.loads(make))
    except SystemExit:
        raise
    except BaseException as error:
        # After an exception nobody knows what state the performer is in: the worker ends, and a new one is made.
        report = pack(traceback.format_exc())
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            channel.send(Kind.FAILED, worker.serial, report)
        raise SystemExit(1) from error


class Worker:
    """One worker, seen from inside."""

    def __init__(self, number: int, channel: Channel) -> None:
        self.serial = NO_TASK
        self._number = number
        self._channel = channel
        self._status: StatusRow | None = None
        self._weights: WeightsReader | None = None
        self._version = NO_WEIGHTS

    def run(self, make: MakePerformer) -> None:
        """Make the performer, then take messages until the other side ends."""
        performer = make()
        try:
            self._answer(Kind.READY)
            while message := self._channel.receive():
                self._take(message, performer)
        finally:
            performer.close()

    def _take(self, message: Message, performer: Performer) -> None:
        if message.kind == Kind.STATUS:
            self._status = rows_of(message.descriptor)[self._number]
            self._status.enter(Phase.WAITING)
        elif message.kind == Kind.WEIGHTS:
            self._weights, self._version = WeightsReader(message.descriptor), NO_WEIGHTS
        else:
            self._perform(message, performer)

    def _perform(self, message: Message, performer: Performer) -> None:
        assert self._status is not None
        assert self._weights is not None
        self.serial = message.serial
        if self._weights.newest != self._version:
            self._status.enter(Phase.TAKING_WEIGHTS, self.serial)
            self._version, tensors = self._weights.read()
            performer.take_weights(self._version, tensors)
        self._status.enter(Phase.COMPUTING, self.serial)
        payload = unpack(message.content)
        started = time.perf_counter()
        value = performer.perform(payload)
        seconds = time.perf_counter() - started
        parts = pack((self._version, seconds, value))
        self._status.enter(Phase.WAITING)
        self._answer(Kind.RESULT, parts)
        self.serial = NO_TASK

    def _answer(self, kind: Kind, parts: list[memoryview] | None = None) -> None:
        try:
            self._channel.send(kind, self.serial, parts)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise SystemExit(0) from error  # the pool was closed in the meantime


def end_with_the_pool(*, by_kernel: bool = sys.platform == "linux") -> None:
    """See to it that this process ends when the one that made the pool ends, even if that was killed.

    A worker's parent is the fork server, which lives as long as its children; so what is watched is a pipe that only
    the pool's process holds open. On Linux the kernel itself kills this process when the pipe closes, whatever it
    computes; elsewhere a thread does, as soon as it gets its turn.
    """
    pool = multiprocessing.parent_process()
    assert pool is not None
    if by_kernel:
        _be_killed_when_closed(pool.sentinel)
    else:
        threading.Thread(target=_end_after, args=(pool.sentinel,), daemon=True, name="pool-watch").start()
    if wait([pool.sentinel], 0):  # it ended before anybody watched
        os._exit(1)


def _be_killed_when_closed(pipe: int) -> None:
    import fcntl

    fcntl.fcntl(pipe, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)


def _end_after(pipe: int) -> None:
    wait([pipe])
    os._exit(1)


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(0)
