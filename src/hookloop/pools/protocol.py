"""The face of a pool of workers: pure tasks go in, results keyed by them come out, whoever computes.

A task is a pure function of its payload and of the weights it is computed with. So it may be computed twice, by
anybody, and the first result counts: a worker that dies or hangs changes when a result comes, never what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from torch import Tensor

Plain = Any
"""Numbers, texts, None, lists, tuples, dicts with text keys, numpy arrays and tensors."""


class TaskKey(NamedTuple):
    """What a task is: one of a fixed number of slots, in one iteration."""

    slot: int
    iteration: int


@dataclass(frozen=True, slots=True)
class Task:
    """Something to compute."""

    key: TaskKey
    payload: Plain
    """All that the result depends on besides the weights; random seeds are in here."""
    min_version: int = 0
    """The weights it is computed with are at least this new."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a task has given."""

    key: TaskKey
    value: Plain
    version: int
    """Of the weights it was computed with."""
    worker: int
    """Who computed it; -1 for the calling process."""
    seconds: float
    """How long that took."""


@dataclass(frozen=True, slots=True)
class PoolHealth:
    """How the workers are."""

    workers: int
    """How many there should be."""
    alive: int
    """How many can take a task now, or are at work."""
    waiting: int
    """Tasks that nobody has begun."""
    running: int
    """Tasks that are being computed."""
    deaths: int = 0
    """Workers that ended by themselves, or were ended because they hung, since the pool was made."""
    retries: int = 0
    """Tasks that were given to another worker."""
    quarantined: tuple[TaskKey, ...] = ()
    """Tasks that were given up: each ended several workers, or failed in them, one after the other."""
    phases: Mapping[int, str] = field(default_factory=dict)
    """What each worker does, by its number."""


class Performer(Protocol):
    """Computes tasks, in a worker of its own; made there, once, by the function that the pool was given."""

    def take_weights(self, version: int, tensors: Mapping[str, Tensor]) -> None:
        """Compute with these weights from now on; copy what is kept, the memory is used again."""
        ...

    def perform(self, payload: Plain) -> Plain:
        """Return the result: the same for the same payload and weights, whatever was computed before."""
        ...

    def close(self) -> None:
        """Release what is held."""
        ...


MakePerformer = Callable[[], Performer]
"""Makes a performer in a worker's process: a function of a module, or ``functools.partial`` of one."""


class WorkerPool(Protocol):
    """Workers that compute tasks. Not for use by several threads."""

    @property
    def workers(self) -> int:
        """How many there are; 0 computes in the calling process."""
        ...

    def publish(self, version: int, tensors: Mapping[str, Tensor]) -> None:
        """Offer newer weights; a worker takes them before its next task. Versions only grow."""
        ...

    def submit(self, task: Task) -> None:
        """Ask for a result; refused before the first weights, or while a task with this key is on its way."""
        ...

    def poll(self, deadline_seconds: float | None = None) -> list[Result]:
        """Return the results that are new, waiting until the deadline for at least one; None waits as long as it takes.

        Raises:
            TaskFailedError: A task was given up; it says which, and what went wrong in the worker.
        """
        ...

    def health(self) -> PoolHealth:
        """Tell how the workers are, without waiting."""
        ...

    def close(self, deadline_seconds: float = 5.0) -> None:
        """End the workers; a second call does nothing. No process is left behind."""
        ...


def gather(pool: WorkerPool, tasks: list[Task]) -> list[Result]:
    """Submit the tasks and return their results, in the order of the tasks: the exact way to use a pool."""
    for task in tasks:
        pool.submit(task)
    found: dict[TaskKey, Result] = {}
    while len(found) < len(tasks):
        found |= {result.key: result for result in pool.poll()}
    return [found[task.key] for task in tasks]
