"""How many workers are worth it: arithmetic on what tasks cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

WAKE_SECONDS = 0.0002
"""What it takes until a waiting process has noticed a message, on a machine that is not idle."""
WORTH = 0.85
"""Workers must save at least the rest, so that an error of measurement does not make a run slower."""
ENOUGH = 1.05
"""More workers must be better than fewer by this factor."""


@dataclass(frozen=True, slots=True)
class TaskCosts:
    """What one task costs, in seconds; see ``measure_costs``."""

    seconds: float
    """To compute it in the calling process."""
    cpu_seconds: float
    """How much of that a core is busy; the rest is waited."""
    transport_seconds: float = 0.0
    """To bring the payload to another process and the result back."""
    weights_seconds: float = 0.0
    """To publish weights and to take them."""


@dataclass(frozen=True, slots=True)
class WorkersChoice:
    """How many workers to have, and why."""

    workers: int
    inline_seconds: float
    """What an iteration takes without workers."""
    seconds: float
    """What it takes with this choice."""


def choose_workers(costs: TaskCosts, *, tasks: int, cores: int, most: int | None = None) -> WorkersChoice:
    """Choose the fewest workers that are about as fast as any number; 0 if none is clearly faster than none.

    Args:
        costs: Of one task.
        tasks: How many make up an iteration; weights are published once in each.
        cores: How many of the machine may be used.
        most: Not more workers than this; by default four for each core.
    """
    inline = tasks * costs.seconds
    most = 4 * cores if most is None else most
    expected = {workers: seconds_with(workers, costs, tasks=tasks, cores=cores) for workers in range(1, most + 1)}
    best = min(expected.values(), default=math.inf)
    if best > inline * WORTH:
        return WorkersChoice(0, inline, inline)
    workers = next(workers for workers, seconds in expected.items() if seconds <= best * ENOUGH)
    return WorkersChoice(workers, inline, expected[workers])


def seconds_with(workers: int, costs: TaskCosts, *, tasks: int, cores: int) -> float:
    """Return how long an iteration takes with so many workers, at the worst.

    Workers that compute share the cores, workers that wait do not need one. The transport is counted as if no two
    tasks' could overlap.
    """
    rounds = math.ceil(tasks / workers)
    each = max(costs.seconds, costs.cpu_seconds * min(workers, tasks) / cores)
    return costs.weights_seconds + rounds * each + tasks * (costs.transport_seconds + WAKE_SECONDS)
