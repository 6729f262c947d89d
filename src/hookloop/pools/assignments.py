"""Which task waits, who computes which, and which was given up: the arithmetic of a pool, without its workers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from reprlib import Repr
from typing import Any

from hookloop.pools.errors import TaskFailedError
from hookloop.pools.protocol import Task, TaskKey

MOST_PER_WORKER = 2
MOST_FAILURES = 3
MOST_EQUAL_FAILURES = 2


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a worker did not give a result."""

    why: str
    trace: str = ""
    """The traceback, where the task raised."""


@dataclass(slots=True)
class Job:
    """A task on its way."""

    serial: int
    """Tells this submission from others with the same key."""
    task: Task
    parcel: Any
    """What is sent to a worker."""
    failures: list[Failure] = field(default_factory=list[Failure])
    is_done: bool = False


class Assignments:
    """Hands tasks out to workers, takes each result once, and gives up a task that ends one worker after the other.

    A task is given up after ``MOST_FAILURES`` workers ended or raised, or when it has raised the same exception
    ``MOST_EQUAL_FAILURES`` times: a pure task will raise it again.
    """

    def __init__(self) -> None:
        self.unanswered = 0
        """How many tasks have neither a result nor been given up."""
        self.retries = 0
        self.quarantined: list[TaskKey] = []
        self._serials = count()
        self._waiting: deque[Job] = deque()
        self._given: dict[int, deque[Job]] = {}

    @property
    def waiting(self) -> int:
        """How many tasks nobody has begun."""
        return len(self._waiting) + sum(max(0, len(jobs) - 1) for jobs in self._given.values())

    @property
    def running(self) -> int:
        """How many tasks are being computed."""
        return sum(bool(jobs) for jobs in self._given.values())

    def add(self, task: Task, parcel: Any) -> Job:
        """Let a task wait for a worker."""
        job = Job(next(self._serials), task, parcel)
        self._waiting.append(job)
        self.unanswered += 1
        return job

    def hand_out(self, ready: Iterable[int]) -> list[tuple[int, Job]]:
        """Give waiting tasks to these workers.

        A worker gets a second task, to go on with while the pool is busy, only as long as there is one for each: a task
        behind a long one would otherwise wait while another worker is idle.
        """
        loads = {worker: len(self._given.setdefault(worker, deque())) for worker in ready}
        given: list[tuple[int, Job]] = []
        while self._waiting and loads:
            worker = min(loads, key=lambda each: (loads[each], each))
            seconds = len(self._waiting) + sum(max(0, load - 1) for load in loads.values())
            if loads[worker] >= MOST_PER_WORKER or (loads[worker] and seconds < len(loads)):
                break
            job = self._waiting.popleft()
            self._given[worker].append(job)
            loads[worker] += 1
            given.append((worker, job))
        return given

    def copy(self, serial: int, worker: int) -> Job | None:
        """Give a task that another worker computes to this one, too; None if it already has a copy, or its result."""
        holders = [jobs for jobs in self._given.values() if any(job.serial == serial for job in jobs)]
        if len(holders) != 1:
            return None
        job = next(job for job in holders[0] if job.serial == serial)
        self._given.setdefault(worker, deque()).append(job)
        self.retries += 1
        return job

    def load(self, worker: int) -> int:
        """Return how many tasks a worker has."""
        return len(self._given.get(worker, ()))

    def answered(self, worker: int, serial: int) -> Job | None:
        """Take note of a result; None if there was one already."""
        jobs = self._given[worker]
        job = next(job for job in jobs if job.serial == serial)
        jobs.remove(job)
        if job.is_done:
            return None
        self._finish(job)
        return job

    def lost(self, worker: int, serial: int, failure: Failure) -> Job | None:
        """Take the tasks of a worker that has ended back; return the one that is given up because of that.

        Args:
            worker: Which one.
            serial: The task it had begun; that one is blamed.
            failure: What happened.
        """
        given_up: Job | None = None
        for job in reversed(self._given.pop(worker, deque())):
            is_blamed = job.serial == serial
            if is_blamed:
                job.failures.append(failure)
            if job.is_done or self._is_held(job):
                continue
            if is_blamed and is_hopeless(job.failures):
                self._finish(job)
                self.quarantined.append(job.task.key)
                given_up = job
            else:
                self.retries += 1
                self._waiting.appendleft(job)
        return given_up

    def _finish(self, job: Job) -> None:
        job.is_done = True
        self.unanswered -= 1

    def _is_held(self, job: Job) -> bool:
        return any(job is other for jobs in self._given.values() for other in jobs)


def is_hopeless(failures: list[Failure]) -> bool:
    """Tell whether another worker would be wasted on a task."""
    last = failures[-MOST_EQUAL_FAILURES:]
    is_equal = len(last) == MOST_EQUAL_FAILURES and all(each.trace and each.why == last[0].why for each in last)
    return is_equal or len(failures) >= MOST_FAILURES


def failed_error(job: Job) -> TaskFailedError:
    """Return the error that tells about a task that was given up."""
    key, failures = job.task.key, job.failures
    trace = f"\n\nIn the worker:\n{failures[-1].trace}" if failures[-1].trace else ""
    return TaskFailedError(
        f"The task of slot {key.slot} in iteration {key.iteration} was given up after {len(failures)} workers "
        f"({'; '.join(dict.fromkeys(each.why for each in failures))}). "
        f"Its payload, which is all one needs to compute it again: {_SHORT.repr(job.task.payload)}{trace}",
        key=key,
    )


_SHORT = Repr()
_SHORT.maxdict = _SHORT.maxlist = _SHORT.maxtuple = 12
_SHORT.maxother = _SHORT.maxstring = _SHORT.maxlong = 200
