"""Pools that play tricks: they compute in this process, but not where, when or in the order one would think."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from hookloop.pools import MakePerformer, PoolHealth, Result, Task
from hookloop.rl import Trainer, build_trainer
from hookloop.rl.build import build_slots, performer_maker
from hookloop.rl.config import RLConfig
from hookloop.rl.slots import SlotSetup


class ScatteredPool:
    """Several performers; a task goes to any of them, some are computed twice, results come in any order."""

    def __init__(self, make: MakePerformer, workers: int, seed: int = 0) -> None:
        self.workers = workers
        self.loads = [0] * workers
        self._performers = [make() for _ in range(workers)]
        self._random = random.Random(seed)
        self._waiting: list[Task] = []
        self._version = -1

    def publish(self, version: int, tensors: Mapping[str, Tensor]) -> None:
        self._version = version
        for performer in self._performers:
            performer.take_weights(version, tensors)

    def submit(self, task: Task) -> None:
        self._waiting.append(task)

    def poll(self, deadline_seconds: float | None = None) -> list[Result]:
        task = self._waiting.pop(self._random.randrange(len(self._waiting)))
        for _ in range(self._random.choice((1, 1, 2))):
            worker = self._random.randrange(self.workers)
            self.loads[worker] += 1
            value = self._performers[worker].perform(task.payload)
        return [Result(task.key, value, self._version, worker, 0.0)]

    def health(self) -> PoolHealth:
        return PoolHealth(workers=self.workers, alive=self.workers, waiting=len(self._waiting), running=0)

    def close(self, deadline_seconds: float = 5.0) -> None:
        for performer in self._performers:
            performer.close()


class LatePool:
    """Computes a task when it is submitted, and gives the result when so many newer weights have been published."""

    workers = 1

    def __init__(self, make: MakePerformer, late_by: Mapping[int, int]) -> None:
        self._performer = make()
        self._late_by = late_by
        self._version = -1
        self._waiting: list[tuple[int, Result]] = []
        self.given: list[Result] = []

    def publish(self, version: int, tensors: Mapping[str, Tensor]) -> None:
        self._version = version
        self._performer.take_weights(version, tensors)

    def submit(self, task: Task) -> None:
        result = Result(task.key, self._performer.perform(task.payload), self._version, 0, 0.0)
        self._waiting.append((self._version + self._late_by.get(task.key.slot, 0), result))

    def poll(self, deadline_seconds: float | None = None) -> list[Result]:
        due = [entry for entry in self._waiting if entry[0] <= self._version] or [min(self._waiting, key=_release)]
        self._waiting = [entry for entry in self._waiting if not any(entry is other for other in due)]
        results = [result for _, result in due]
        self.given += results
        return results

    def health(self) -> PoolHealth:
        return PoolHealth(workers=1, alive=1, waiting=len(self._waiting), running=0)

    def close(self, deadline_seconds: float = 5.0) -> None:
        self._performer.close()


def _release(entry: tuple[int, Any]) -> int:
    return entry[0]


def trainer_with(config: RLConfig, make_pool: Any, *, seed: int = 3) -> Trainer:
    """A trainer whose rollouts are played by the pool that ``make_pool(make_performer)`` makes."""
    setup = build_slots(config)
    slots = SlotSetup(
        setup.envs, lambda _payload, _weights: make_pool(performer_maker(config)), setup.mode, setup.max_lag
    )
    return build_trainer(config, seed=seed, slots=slots)
