"""How fast rollouts are played, by how many workers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import cast

from hookloop.pools import WorkersChoice
from hookloop.rl.slots.collecting import SlotCollector
from hookloop.rl.slots.performing import RolloutNotes
from hookloop.rl.slots.setup import PoolMaker

WARM_UPS = 2


def measure_steps_per_second(
    collector: SlotCollector, *, seconds: float, time_seconds: Callable[[], float] = time.perf_counter
) -> float:
    """Play rollouts for about so long, learn nothing from them, and return the environment steps of a second."""
    try:
        for _ in range(WARM_UPS):  # the workers are started
            collector.collect(RolloutNotes(collector))
        env_steps, started = 0, time_seconds()
        while (elapsed := time_seconds() - started) < seconds or not env_steps:
            notes = RolloutNotes(collector)
            collector.collect(notes)
            env_steps += sum(notes.env_steps)
    finally:
        collector.close()
    return env_steps / elapsed


def measured_choice(collector: SlotCollector) -> WorkersChoice:
    """Return how many workers ``workers="auto"`` takes."""
    maker = cast("PoolMaker", collector.setup.make_pool)
    return maker.choose(collector.gathering.make_payload(0, 0, 0), collector.weights())
