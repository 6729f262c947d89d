"""A pool of processes of this machine."""

from __future__ import annotations

import multiprocessing
import pickle
import selectors
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from multiprocessing.util import Finalize

from torch import Tensor

from hookloop.pools.assignments import Failure, Job
from hookloop.pools.channel import Kind, Message
from hookloop.pools.crew import CrewPool, last_line
from hookloop.pools.errors import PoolUsageError
from hookloop.pools.packing import pack, unpack
from hookloop.pools.protocol import MakePerformer, Plain
from hookloop.pools.seat import Seat
from hookloop.pools.settings import PoolSettings
from hookloop.pools.status import StatusBoard
from hookloop.pools.weights import WeightsWriter, layout_of

PRELOADED = ("__main__", "hookloop.pools.serving")


class ProcessPool(CrewPool[Seat]):
    """Workers that are processes of this machine, each with a performer of its own and one thread for tensors.

    Tasks and results go through pipes, weights through shared memory. A worker that ends or hangs is replaced, and its
    tasks are computed by others. The workers end with the process that made the pool, however that ends.

    Args:
        make: Makes what computes, in each worker: a function of a module, or ``functools.partial`` of one.
        workers: How many processes.
        settings: How they are treated.
    """

    def __init__(self, make: MakePerformer, *, workers: int, settings: PoolSettings | None = None) -> None:
        if workers < 1:
            raise PoolUsageError(f"A pool of processes needs at least 1 worker, got {workers}; InlinePool has none.")
        pickled = _pickled(make)
        self._writer: WeightsWriter | None = None
        self._selector = selectors.DefaultSelector()
        self._board = StatusBoard(workers)
        seats = [Seat(number, pickled, row) for number, row in enumerate(self._board.rows)]
        super().__init__(seats, settings or PoolSettings())
        # The workers are dismissed at the end of the program, or of the pool, before multiprocessing waits for them.
        self._finish = Finalize(self, _end, (seats, 1.0), exitpriority=10)
        multiprocessing.get_context("forkserver").set_forkserver_preload([*PRELOADED, *_modules_of(make)])
        for seat in seats:
            self._start(seat)

    def publish(self, version: int, tensors: Mapping[str, Tensor]) -> None:
        """Offer newer weights; every worker takes them before its next task."""
        self._require_open()
        self._admission.take_version(version)
        if self._writer and self._writer.layout == layout_of(tensors):
            self._writer.publish(version, tensors)
            return
        if self._writer:
            self._writer.close()
        self._writer = WeightsWriter(tensors)
        self._writer.publish(version, tensors)
        for seat in self._seats:
            if seat.is_taken:
                self._send_weights(seat)

    def close(self, deadline_seconds: float = 5.0) -> None:
        """End the workers, wherever they are; one that has not closed its performer by the deadline is killed."""
        if not self._is_open:
            return
        self._finish.cancel()
        self._selector.close()
        _end(list(self._seats), deadline_seconds)
        self._board.close()
        if self._writer:
            self._writer.close()

    @property
    def _is_open(self) -> bool:
        return self._finish.still_active()

    def _parcel(self, payload: Plain) -> memoryview:
        return memoryview(b"".join(pack(payload)))

    def _start(self, seat: Seat) -> None:
        if not seat.start():
            return
        for waited_for in (seat.channel, seat.sentinel):
            self._selector.register(waited_for, selectors.EVENT_READ, seat)
        with suppress(BrokenPipeError, ConnectionResetError):  # it has ended already
            seat.channel.send_file(Kind.STATUS, self._board.descriptor, self._board.size)
        if self._writer:
            self._send_weights(seat)

    def _send_weights(self, seat: Seat) -> None:
        assert self._writer is not None
        with suppress(BrokenPipeError, ConnectionResetError):  # it has ended; the next one gets them
            seat.channel.send_file(Kind.WEIGHTS, self._writer.descriptor, self._writer.size)

    def _send(self, seat: Seat, job: Job) -> None:
        if not seat.is_taken:
            return  # it was buried when it was sent another
        try:
            with suppress(BrokenPipeError, ConnectionResetError):  # it has ended; then another gets the task
                seat.channel.send(Kind.TASK, job.serial, [job.parcel])
        except TimeoutError:
            self._bury(seat, "its worker takes no messages")

    def _look(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            seat: Seat = key.data
            if not seat.is_taken or key.fileobj not in (seat.channel, seat.sentinel):
                continue  # it was buried when another of these events was looked at
            try:
                message = seat.channel.receive() if key.fileobj is seat.channel else None
            except (EOFError, OSError):
                message = None
            if message is None:
                self._bury(seat)
            else:
                self._hear(seat, message)

    def _hear(self, seat: Seat, message: Message) -> None:
        if message.kind == Kind.READY:
            seat.note_ready()
        elif message.kind == Kind.RESULT:
            self._take_result(seat, message.serial, unpack(message.content))
        else:
            seat.last_words = (message.serial, unpack(message.content))
            self._bury(seat)

    def _bury(self, seat: Seat, why: str = "") -> None:
        for message in seat.rest():
            self._hear(seat, message)
            if not seat.is_taken:
                return  # its last words were among them
        serial, trace = seat.last_words or (seat.status.serial, "")
        self._unregister(seat)
        manner = seat.bury(at_once=bool(why))
        self._take_back(seat, serial, Failure(why or (last_line(trace) if trace else manner), trace))

    def _dismiss(self, seat: Seat) -> None:
        self._unregister(seat)
        seat.dismiss()
        seat.wait_until_left(time.monotonic() + 1.0)

    def _unregister(self, seat: Seat) -> None:
        for waited_for in (seat.channel, seat.sentinel):
            self._selector.unregister(waited_for)


def _end(seats: list[Seat], deadline_seconds: float) -> None:
    for seat in seats:
        seat.dismiss()
    deadline = time.monotonic() + deadline_seconds
    for seat in seats:
        seat.wait_until_left(deadline)


def _pickled(make: MakePerformer) -> bytes:
    try:
        return pickle.dumps(make)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise PoolUsageError(
            f"{make!r} cannot be sent to a worker ({error}); give a function of a module, or functools.partial of one."
        ) from error


def _modules_of(make: object) -> list[str]:
    """Return the modules that a worker needs to make its performer; the fork server imports them once for all."""
    if isinstance(make, partial):
        parts = (make.func, *make.args, *make.keywords.values())
        return list(dict.fromkeys(module for part in parts for module in _modules_of(part)))
    module = getattr(make, "__module__", None)
    return [module] if isinstance(module, str) else []
