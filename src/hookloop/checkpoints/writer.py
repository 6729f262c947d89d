"""A thread that does one job at a time, so that training need not wait for the disk."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Writer(Generic[Result]):
    """Carries out jobs in the background; holds at most one, so that nothing piles up in memory."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._executor: ThreadPoolExecutor | None = None
        self._job: Future[Result] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a job is under way."""
        return self._job is not None and not self._job.done()

    def start(self, job: Callable[[], Result]) -> None:
        """Begin a job; the one before must have been taken."""
        if self._job is not None:
            raise RuntimeError("the result of the job before was not taken yet")
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, thread_name_prefix=self._name)
        self._job = self._executor.submit(job)

    def take(self, *, wait: bool = False) -> Result | None:
        """Return the result of the job, or raise what it raised; None if there is none, or it is still running."""
        if self._job is None or (self.is_busy and not wait):
            return None
        job = self._job
        try:
            return job.result()
        finally:
            if job.done():  # an interrupt while waiting leaves the job to be taken later
                self._job = None

    def close(self) -> None:
        """Wait for the job and end the thread; a result that nobody took is dropped."""
        if self._executor is not None:
            self._executor.shutdown(wait=True)
            self._executor = None
        self._job = None
