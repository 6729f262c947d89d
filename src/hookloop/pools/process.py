"""A pool of processes of this machine."""

from __future__ import annotations

import multiprocessing
import pickle
import selectors
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.util import Finalize

from torch import Tensor

from hookloop.pools.admission import Admission
from hookloop.pools.assignments import Assignments, Failure, failed_error
from hookloop.pools.channel import Kind, Message
from hookloop.pools.errors import NoWorkersError, PoolUsageError, TaskFailedError
from hookloop.pools.packing import pack, unpack
from hookloop.pools.protocol import MakePerformer, PoolHealth, Result, Task
from hookloop.pools.seat import Seat
from hookloop.pools.settings import PoolSettings
from hookloop.pools.status import Phase, StatusBoard
from hookloop.pools.weights import WeightsWriter, layout_of

PRELOADED = ("__main__", "hookloop.pools.serving")


class ProcessPool:
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
        self.workers = workers
        self._settings = settings or PoolSettings()
        self._admission = Admission()
        self._assignments = Assignments()
        self._results: list[Result] = []
        self._failures: deque[TaskFailedError] = deque()
        self._deaths = 0
        self._last_failure = Failure("")
        self._writer: WeightsWriter | None = None
        self._selector = selectors.DefaultSelector()
        self._board = StatusBoard(workers)
        pickled = _pickled(make)
        self._seats = [Seat(number, pickled, row) for number, row in enumerate(self._board.rows)]
        # The workers are dismissed at the end of the program, or of the pool, before multiprocessing waits for them.
        self._finish = Finalize(self, _end, (self._seats, 0.0), exitpriority=10)
        multiprocessing.get_context("forkserver").set_forkserver_preload(list(PRELOADED))
        for seat in self._seats:
            self._start(seat)

    @property
    def pids(self) -> Sequence[int]:
        """The process numbers of the workers."""
        return [seat.pid for seat in self._seats if seat.pid is not None]

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

    def submit(self, task: Task) -> None:
        """Ask for a result; the payload is copied."""
        self._require_open()
        parcel = memoryview(b"".join(pack(task.payload)))
        self._admission.admit(task)
        self._assignments.add(task, parcel)
        self._hand_out()

    def poll(self, deadline_seconds: float | None = None) -> list[Result]:
        """Return the results that are new, waiting until the deadline for at least one; none if there is no task."""
        self._require_open()
        until = float("inf") if deadline_seconds is None else time.monotonic() + deadline_seconds
        self._look(0.0)
        while not self._results and not self._failures and self._assignments.unanswered:
            self._tend()
            self._hand_out()
            left = until - time.monotonic()
            if left <= 0.0:
                break
            self._look(min(left, self._seconds_until_next_check()))
        self._hand_out()
        if not self._results and self._failures:
            raise self._failures.popleft()
        results, self._results = self._results, []
        return results

    def health(self) -> PoolHealth:
        """Tell how the workers are, without waiting."""
        return PoolHealth(
            workers=self.workers,
            alive=sum(seat.is_alive for seat in self._seats),
            waiting=self._assignments.waiting,
            running=self._assignments.running,
            deaths=self._deaths,
            retries=self._assignments.retries,
            quarantined=tuple(self._assignments.quarantined),
            phases={seat.number: str(seat.status.phase) for seat in self._seats},
        )

    def close(self, deadline_seconds: float = 5.0) -> None:
        """End the workers: idle ones at once, the others where they are."""
        if not self._finish.still_active():
            return
        self._finish.cancel()
        self._selector.close()
        _end(self._seats, deadline_seconds)
        self._board.close()
        if self._writer:
            self._writer.close()

    def _require_open(self) -> None:
        if not self._finish.still_active():
            raise PoolUsageError("The pool is closed; make a new one.")

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

    def _hand_out(self) -> None:
        ready = [seat.number for seat in self._seats if seat.is_ready and not self._is_worn(seat)]
        for number, job in self._assignments.hand_out(ready):
            self._send_task(self._seats[number], job.serial, job.parcel)

    def _send_task(self, seat: Seat, serial: int, parcel: memoryview) -> None:
        if not seat.is_taken:
            return  # it was buried when it was sent another
        try:
            with suppress(BrokenPipeError, ConnectionResetError):  # it has ended; then another gets the task
                seat.channel.send(Kind.TASK, serial, [parcel])
        except TimeoutError:
            self._bury(seat, "its worker takes no messages")

    def _look(self, seconds: float) -> None:
        """Wait for workers that say something or end, and listen to them."""
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
            seat.note_result()
            job = self._assignments.answered(seat.number, message.serial)
            if job:
                version, seconds, value = unpack(message.content)
                self._admission.forget(job.task.key)
                self._results.append(Result(job.task.key, value, version, seat.number, seconds))
        else:
            seat.last_words = (message.serial, unpack(message.content))
            self._bury(seat)

    def _bury(self, seat: Seat, why: str = "") -> None:
        """End a worker for good, take its tasks back, and plan the next one."""
        for message in seat.rest():
            self._hear(seat, message)
            if not seat.is_taken:
                return  # its last words were among them
        serial, trace = seat.last_words or (seat.status.serial, "")
        for waited_for in (seat.channel, seat.sentinel):
            self._selector.unregister(waited_for)
        manner = seat.bury(at_once=bool(why))
        why = why or (trace.strip().splitlines()[-1] if trace else manner)
        self._deaths += 1
        self._last_failure = Failure(why, trace)
        job = self._assignments.lost(seat.number, serial, self._last_failure)
        if job:
            self._admission.forget(job.task.key)
            self._failures.append(failed_error(job))

    def _tend(self) -> None:
        """End workers that hang, replace those that have ended or are worn, and copy tasks that are slow."""
        for seat in self._seats:
            if seat.is_taken and self._seconds_left(seat) <= 0.0:
                self._bury(seat, f"its worker was {seat.status.phase} for {seat.status.seconds:.3g} s and was ended")
            elif seat.is_taken and self._is_worn(seat) and not self._assignments.load(seat.number):
                self._replace(seat)
            elif not seat.is_taken and not seat.pause_seconds:
                self._start(seat)
        if not self._failures and all(seat.is_hopeless for seat in self._seats):
            raise _no_workers(self._last_failure)
        if self._settings.copy_after_seconds is not None:
            self._copy_slow_tasks(self._settings.copy_after_seconds)

    def _replace(self, seat: Seat) -> None:
        for waited_for in (seat.channel, seat.sentinel):
            self._selector.unregister(waited_for)
        seat.dismiss(is_busy=False)
        seat.wait_until_left(time.monotonic() + 1.0)
        self._start(seat)

    def _copy_slow_tasks(self, after_seconds: float) -> None:
        idle = [seat for seat in self._seats if seat.is_ready and not self._assignments.load(seat.number)]
        for seat in self._seats:
            if idle and seat.status.phase == Phase.COMPUTING and seat.status.seconds > after_seconds:
                job = self._assignments.copy(seat.status.serial, idle[-1].number)
                if job:
                    self._send_task(idle.pop(), job.serial, job.parcel)

    def _is_worn(self, seat: Seat) -> bool:
        return self._settings.tasks_per_worker is not None and seat.results >= self._settings.tasks_per_worker

    def _seconds_left(self, seat: Seat) -> float:
        phase, settings = seat.status.phase, self._settings
        limit = settings.start_seconds_limit if phase == Phase.STARTING else settings.task_seconds_limit
        return float("inf") if limit is None or phase == Phase.WAITING else limit - seat.status.seconds

    def _seconds_until_next_check(self) -> float:
        times = [self._seconds_left(seat) if seat.is_taken else seat.pause_seconds for seat in self._seats]
        if self._settings.copy_after_seconds is not None:
            times.append(self._settings.copy_after_seconds / 4)
        return min(3600.0, *(max(0.001, seconds) for seconds in times))


def _end(seats: list[Seat], deadline_seconds: float) -> None:
    for seat in seats:
        seat.dismiss(is_busy=seat.status.phase != Phase.WAITING)
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


def _no_workers(last: Failure) -> NoWorkersError:
    trace = f"\n\nIn the worker:\n{last.trace}" if last.trace else ""
    return NoWorkersError(
        f"No worker could be kept alive: one after the other ended without a result ({last.why}). "
        f"Compute without workers to see why; a script that makes a pool needs 'if __name__ == \"__main__\":'.{trace}"
    )
