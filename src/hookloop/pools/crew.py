"""What all engines with workers have in common: who gets which task, who is replaced, and what is given up."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from hookloop.pools.admission import Admission
from hookloop.pools.assignments import Assignments, Failure, Job, failed_error
from hookloop.pools.errors import NoWorkersError, PoolUsageError, TaskFailedError
from hookloop.pools.protocol import Plain, PoolHealth, Result, Task
from hookloop.pools.settings import PoolSettings
from hookloop.pools.status import Phase
from hookloop.pools.turns import Turns

if TYPE_CHECKING:
    from torch import Tensor

SeatT = TypeVar("SeatT", bound=Turns)


class CrewPool(ABC, Generic[SeatT]):
    """Keeps a worker in each seat and the workers busy; an engine says how one is started, asked and ended.

    Args:
        seats: One for each worker.
        settings: How the workers are treated.
    """

    def __init__(self, seats: Sequence[SeatT], settings: PoolSettings) -> None:
        self._seats = seats
        self._settings = settings
        self._admission = Admission()
        self._assignments = Assignments()
        self._results: list[Result] = []
        self._failures: deque[TaskFailedError] = deque()
        self._deaths = 0
        self._last_failure = Failure("")

    @abstractmethod
    def publish(self, version: int, tensors: Mapping[str, Tensor]) -> None:
        """Offer newer weights; every worker takes them before its next task."""

    @abstractmethod
    def close(self, deadline_seconds: float = 5.0) -> None:
        """End the workers."""

    @property
    @abstractmethod
    def _is_open(self) -> bool: ...

    @abstractmethod
    def _parcel(self, payload: Plain) -> Any:
        """Return a copy of a payload, as it is sent."""

    @abstractmethod
    def _start(self, seat: SeatT) -> None:
        """Start a worker."""

    @abstractmethod
    def _send(self, seat: SeatT, job: Job) -> None:
        """Give a worker a task; if it has ended, that is found out later."""

    @abstractmethod
    def _look(self, seconds: float) -> None:
        """Wait for workers that say something or end, and listen to them."""

    @abstractmethod
    def _bury(self, seat: SeatT, why: str = "") -> None:
        """End a worker for good, take its tasks back, and plan the next one."""

    @abstractmethod
    def _dismiss(self, seat: SeatT) -> None:
        """End a worker that has no task."""

    @property
    def workers(self) -> int:
        """How many there are."""
        return len(self._seats)

    @property
    def pids(self) -> Sequence[int]:
        """The process numbers of the workers."""
        return [seat.pid for seat in self._seats if seat.pid is not None]

    def submit(self, task: Task) -> None:
        """Ask for a result; the payload is copied."""
        self._require_open()
        parcel = self._parcel(task.payload)
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

    def _require_open(self) -> None:
        if not self._is_open:
            raise PoolUsageError("The pool is closed; make a new one.")

    def _hand_out(self) -> None:
        ready = [seat.number for seat in self._seats if seat.is_ready and not self._is_worn(seat)]
        for number, job in self._assignments.hand_out(ready):
            self._give(self._seats[number], job)

    def _give(self, seat: SeatT, job: Job) -> None:
        seat.sent_at = time.monotonic()
        self._send(seat, job)

    def _take_result(self, seat: SeatT, serial: int, content: Plain) -> None:
        """Keep what a worker has computed: the version of its weights, how long it took, and the value."""
        seat.note_result()
        job = self._assignments.answered(seat.number, serial)
        if job:
            version, seconds, value = content
            self._admission.forget(job.task.key)
            self._results.append(Result(job.task.key, value, version, seat.number, seconds))

    def _take_back(self, seat: SeatT, serial: int, failure: Failure) -> None:
        """Take the tasks of a worker that has ended back, and blame that on the one it had begun."""
        self._deaths += 1
        self._last_failure = failure
        job = self._assignments.lost(seat.number, serial, failure)
        if job:
            self._admission.forget(job.task.key)
            self._failures.append(failed_error(job))

    def _tend(self) -> None:
        """End workers that hang, replace those that have ended or are worn, and copy tasks that are slow."""
        for seat in self._seats:
            if seat.is_taken and self._seconds_left(seat) <= 0.0:
                self._bury(seat, f"its worker was {seat.status.phase} for {seat.status.seconds:.3g} s and was ended")
            elif seat.is_taken and self._is_worn(seat) and not self._assignments.load(seat.number):
                self._dismiss(seat)
                self._start(seat)
            elif not seat.is_taken and not seat.pause_seconds:
                self._start(seat)
        if not self._failures and all(seat.is_hopeless for seat in self._seats):
            raise _no_workers(self._last_failure)
        if self._settings.copy_after_seconds is not None:
            self._copy_slow_tasks(self._settings.copy_after_seconds)

    def _copy_slow_tasks(self, after_seconds: float) -> None:
        idle = [seat for seat in self._seats if seat.is_ready and not self._assignments.load(seat.number)]
        for seat in self._seats:
            if idle and seat.status.phase == Phase.COMPUTING and seat.status.seconds > after_seconds:
                job = self._assignments.copy(seat.status.serial, idle[-1].number)
                if job:
                    self._give(idle.pop(), job)

    def _is_worn(self, seat: SeatT) -> bool:
        return self._settings.tasks_per_worker is not None and seat.results >= self._settings.tasks_per_worker

    def _seconds_left(self, seat: SeatT) -> float:
        phase, settings = seat.status.phase, self._settings
        limit = settings.start_seconds_limit if phase == Phase.STARTING else settings.task_seconds_limit
        if limit is None or (phase == Phase.WAITING and not self._assignments.load(seat.number)):
            return float("inf")
        if phase == Phase.WAITING:  # although it was sent a task: it does not run at all
            return limit - min(seat.status.seconds, time.monotonic() - seat.sent_at)
        return limit - seat.status.seconds

    def _seconds_until_next_check(self) -> float:
        times = [self._seconds_left(seat) if seat.is_taken else seat.pause_seconds for seat in self._seats]
        if self._settings.copy_after_seconds is not None:
            times.append(self._settings.copy_after_seconds / 4)
        return min(3600.0, *(max(0.001, seconds) for seconds in times))


def last_line(trace: str) -> str:
    """Return the line of a traceback that says what was raised."""
    return trace.strip().splitlines()[-1]


def _no_workers(last: Failure) -> NoWorkersError:
    trace = f"\n\nIn the worker:\n{last.trace}" if last.trace else ""
    return NoWorkersError(
        f"No worker could be kept alive: one after the other ended without a result ({last.why}). "
        f"Compute without workers to see why; a script that makes a pool needs 'if __name__ == \"__main__\":'.{trace}"
    )
