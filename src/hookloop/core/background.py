"""Running a hook off the training thread: on a snapshot, in order, with a bounded queue."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from hookloop.core.context import HookContext

QUEUE_LENGTH = 2  # calls under way or waiting; training waits for the oldest beyond that


@dataclass(frozen=True, slots=True)
class Delivery:
    """The end of a background call: its result or its error, and the snapshot it worked on."""

    event: str
    snapshot: HookContext
    result: object = None
    error: Exception | None = None


class BackgroundRunner:
    """One hook's background thread. Calls run one after another, so the hook needs no locks."""

    def __init__(self, name: str, notify: Callable[[], None]) -> None:
        self._name = name
        self._pool: ThreadPoolExecutor | None = None
        self._under_way: deque[Future[Delivery]] = deque()
        self._notify = notify

    def submit(self, event: str, call: Callable[[HookContext], Any], snapshot: HookContext) -> None:
        """Start a call; waits while the queue is full."""
        unfinished = [future for future in self._under_way if not future.done()]
        if len(unfinished) >= QUEUE_LENGTH:
            unfinished[0].exception()  # waits until it is done
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix=f"hook-{self._name}")
        future = self._pool.submit(_deliver, event, call, snapshot)
        self._under_way.append(future)
        future.add_done_callback(lambda _done: self._notify())

    def collect(self, *, wait: bool) -> list[Delivery]:
        """Return the finished calls in order; all of them, when told to wait."""
        found: list[Delivery] = []
        while self._under_way and (wait or self._under_way[0].done()):
            found.append(self._under_way.popleft().result())
        return found

    def close(self) -> None:
        """Let the thread end once its calls are done; the next call starts another."""
        if self._pool is not None:
            self._pool.shutdown(wait=True)
            self._pool = None


def _deliver(event: str, call: Callable[[HookContext], Any], snapshot: HookContext) -> Delivery:
    try:
        return Delivery(event, snapshot, result=call(snapshot))
    except Exception as error:  # noqa: BLE001  # the dispatcher: the hook's policy decides at the next event
        return Delivery(event, snapshot, error=error)
