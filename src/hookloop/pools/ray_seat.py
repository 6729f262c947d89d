"""A seat for a worker that is a Ray actor: the calls it has not answered, and how it is ended."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import psutil
import ray

from hookloop.pools.ray_worker import Parcel, RayWorker
from hookloop.pools.status import NO_TASK, Phase, StatusRow
from hookloop.pools.turns import Turns

Ref = Any
Actor = Any


class RaySeat(Turns):
    """Starts one actor after the other.

    Ray restarts none and repeats no call: an actor that Ray had made anew would have no weights, and would not say so.

    Args:
        number: Which worker it is.
        make: The pickled function that makes its performer.
        options: What Ray sets aside for an actor.
        is_here: Whether actors are processes of this machine.
    """

    def __init__(self, number: int, make: bytes, options: Mapping[str, Any], *, is_here: bool) -> None:
        super().__init__(number, StatusRow(np.zeros(3, np.int64)))
        self._make = make
        self._options = options
        self._is_here = is_here
        self._actor: Actor | None = None
        self._pid: int | None = None
        self._process: psutil.Process | None = None
        self._leaving: list[psutil.Process] = []
        self._calls: deque[tuple[int, Ref]] = deque()

    @property
    def is_taken(self) -> bool:
        """Tell whether an actor was started here that is not known to have ended."""
        return self._actor is not None

    @property
    def is_alive(self) -> bool:
        """Tell whether there is an actor that has begun; one that died without a task is found out by the next."""
        return self._is_ready

    @property
    def pid(self) -> int | None:
        """The number of its process."""
        return self._pid

    @property
    def call(self) -> Ref | None:
        """The oldest call that is not answered, which is the one that the actor is at."""
        return self._calls[0][1] if self._calls else None

    @property
    def serial(self) -> int:
        """The task of that call."""
        return self._calls[0][0] if self._calls else NO_TASK

    def start(self) -> None:
        """Start an actor, wherever Ray finds a place for it."""
        self.results = 0
        self.status.enter(Phase.STARTING)
        self._actor = ray.remote(RayWorker).options(max_restarts=0, max_task_retries=0, **self._options).remote()
        self._calls.append((NO_TASK, self._actor.begin.remote(self._make)))

    def note_begun(self, pid: int) -> None:
        """Note that the actor takes tasks."""
        self.note_ready()
        self._pid = pid
        if self._is_here:
            with suppress(psutil.NoSuchProcess):  # it has ended since
                self._process = psutil.Process(pid)

    def ask(self, serial: int, version: int, weights: Ref, parcel: Parcel) -> None:
        """Give the actor a task."""
        assert self._actor is not None
        self._calls.append((serial, self._actor.perform.remote(version, [weights], parcel)))
        if len(self._calls) == 1:
            self.status.enter(Phase.COMPUTING, serial)

    def answered(self) -> int:
        """Note that the oldest call is answered; return its task."""
        serial, _ = self._calls.popleft()
        self.status.enter(Phase.COMPUTING if self._calls else Phase.WAITING, self.serial)
        return serial

    def ask_to_end(self) -> Ref | None:
        """Let an actor without tasks release what it holds; None if there is none."""
        return self._actor.end.remote() if self._actor and self._is_ready and not self._calls else None

    def leave(self) -> None:
        """End the actor, whatever it is at."""
        assert self._actor is not None
        ray.kill(self._actor, no_restart=True)
        if self._process:
            self._leaving = [process for process in self._leaving if process.is_running()] + [self._process]
        self._process = None
        self._actor = self._pid = None
        self._calls.clear()
        self._is_ready = False
        self.status.enter(Phase.ENDED, NO_TASK)

    def wait_until_left(self, deadline: float) -> None:
        """Wait for the processes of actors that were ended, where they are ours; at the deadline they are killed.

        Ray asks a process to end itself, and waits for seconds before it ends one that does not hear.
        """
        _, deaf = psutil.wait_procs(self._leaving, timeout=max(0.0, deadline - time.monotonic()))
        for process in deaf:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._leaving = []
