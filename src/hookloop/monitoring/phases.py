"""What a run is doing, as one attribute that any thread may read."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

START_UP = "start-up"
EPOCH = "epoch"
ROLLOUT = "rollout"
TRAIN = "train"
EVALUATION = "evaluation"
END = "end"
ENDED = "ended"

PHASES = (START_UP, EPOCH, ROLLOUT, TRAIN, EVALUATION, END)


@dataclass(frozen=True, slots=True)
class Phase:
    """One stretch of a run: what, since when, and the how-manyth of the run."""

    name: str
    since_ns: int
    number: int


class PhaseTrace:
    """The phases a run is in, the outer ones first: ``epoch``, then ``rollout``.

    The training thread writes ``stack``, whole, a few times per epoch. Other threads read it without a lock.
    """

    def __init__(self, time_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self.stack: tuple[Phase, ...] = ()
        self._time_ns = time_ns
        self._count = 0

    @property
    def path(self) -> str:
        """The running phases as one word, such as ``epoch/rollout``; empty before the first."""
        return "/".join(phase.name for phase in self.stack)

    def reset(self, name: str) -> None:
        """Begin a phase that is inside no other; all that were running are over."""
        self.stack = (self._new(name),)

    def enter(self, name: str) -> None:
        """Begin a phase inside those that run."""
        self.stack = (*self.stack, self._new(name))

    def leave(self, name: str) -> None:
        """End a phase and all inside it; nothing happens if it does not run."""
        stack = self.stack
        for depth in range(len(stack) - 1, -1, -1):
            if stack[depth].name == name:
                self.stack = stack[:depth]
                return

    def _new(self, name: str) -> Phase:
        self._count += 1
        return Phase(name, self._time_ns(), self._count)
