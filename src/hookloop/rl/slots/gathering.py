"""Who asks for rollouts and takes them in: exactly, in step with learning, or asynchronously, ahead of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from hookloop.pools import Result, Task, TaskFailedError, TaskKey, WorkerPool, gather
from hookloop.rl.envs import Envs
from hookloop.rl.slots.envs import SlotEnvs
from hookloop.rl.slots.statistics import count_nothing, merge_added, statistics_of

Plain = Any

MAX_KEY = 2**62

MakePool = Callable[[Plain, Mapping[str, Tensor]], WorkerPool]
"""Starts workers, given a payload and weights like those to come."""

GiveWeights = Callable[[], Mapping[str, Tensor]]
"""Returns what the coming rollouts are played with."""


class RolloutFailedError(TaskFailedError):
    """A rollout could not be played by any worker."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """What one task has brought home."""

    slot: int
    version: int
    """Of the weights that played it."""
    value: Plain


class Gathering(ABC):
    """Asks a pool for rollouts, and keeps where each slot stands.

    Args:
        make_pool: Makes the pool, when it is first needed, and again after ``close``.
        envs: The environments as the learner sees them, with their wrappers.
        slot_envs: Those below the wrappers.
        weights: Returns what is published before rollouts are asked for.
        generator: Gives each rollout the key of its random numbers.
    """

    def __init__(
        self,
        make_pool: MakePool,
        envs: Envs,
        slot_envs: SlotEnvs,
        weights: GiveWeights,
        generator: torch.Generator,
    ) -> None:
        self.iteration = 0
        """The number of the next task of any slot."""
        count_nothing(envs)
        self._make_pool = make_pool
        self._envs = envs
        self._slot_envs = slot_envs
        self._weights = weights
        self._generator = generator
        self._pool: WorkerPool | None = None
        self._version = 0
        self._played: dict[int, list[int]] = {}  # which state each slot was left in, by its tag
        self._under_way: dict[TaskKey, Plain] = {}
        self._begun_anew = 0

    @abstractmethod
    def next_rollouts(self) -> Sequence[Rollout]:
        """Return as many rollouts as there are slots."""

    def metrics(self) -> dict[str, float]:
        """Return how the workers are."""
        if self._pool is None:
            return {}
        health = self._pool.health()
        counts = {"alive": health.alive, "deaths": health.deaths, "retries": health.retries}
        if self._begun_anew:
            counts["begun_anew"] = self._begun_anew
        return {f"workers/{name}": float(count) for name, count in counts.items()}

    def close(self) -> None:
        """End the workers; what is under way is lost, and asked for anew with the next rollouts."""
        if self._pool is not None:
            self._pool.close()
        self._pool = None
        self.forget()

    def forget(self) -> None:
        """Take in nothing of what is under way: the slots have been put somewhere else."""
        self._under_way.clear()
        self._played.clear()

    def _publish(self) -> WorkerPool:
        weights = self._weights()
        if self._pool is None:
            self._pool = self._make_pool(self.make_payload(0, self.iteration, 0), weights)
        self._version += 1
        self._pool.publish(self._version, weights)
        return self._pool

    def make_payload(self, slot: int, iteration: int, key: int) -> dict[str, Plain]:
        """Return all that a rollout of a slot depends on besides the weights."""
        envs = self._slot_envs
        return {
            "slot": slot,
            "iteration": iteration,
            "after": self._played.get(slot),
            "place": envs.places[slot],
            "seed": envs.slot_seed(slot),
            "key": key,
            "statistics": {name: counted.state_dict() for name, counted in statistics_of(self._envs).items()},
        }

    def _make_task(self, slot: int, iteration: int, key: int) -> Task:
        task = Task(TaskKey(slot, iteration), self.make_payload(slot, iteration, key))
        self._under_way[task.key] = task.payload
        return task

    def _draw_keys(self, count: int) -> list[int]:
        return torch.randint(MAX_KEY, (count,), generator=self._generator).tolist()

    def _take_home(self, result: Result) -> Rollout:
        """Keep where a rollout has led to."""
        slot = result.key.slot
        del self._under_way[result.key]
        self._slot_envs.places[slot] = result.value["place"]
        self._begun_anew += result.value["has_begun_anew"]
        self._played[slot] = [result.key.iteration, result.version]
        merge_added(statistics_of(self._envs), result.value["added"])
        return Rollout(slot, result.version, result.value)

    def _explained(self, error: TaskFailedError) -> RolloutFailedError:
        """Return an error that says what is needed to play the rollout again."""
        slot, iteration = error.key
        payload = self._under_way[error.key]
        return RolloutFailedError(
            f"The rollout of slot {slot} in iteration {iteration} was given up. Its environments began with the seed "
            f"{payload['seed']}, its actions with the key {payload['key']}; resume with workers=0, and the same "
            f"rollout fails in this process, where it can be looked at. {error}",
            key=error.key,
        )


class ExactGathering(Gathering):
    """One rollout of every slot, with the weights of now: the same bits with any number of workers."""

    def next_rollouts(self) -> list[Rollout]:
        """Play every slot once and wait for all."""
        pool, slots = self._publish(), range(self._slot_envs.slots)
        keys = self._draw_keys(len(slots))
        tasks = [self._make_task(slot, self.iteration, key) for slot, key in zip(slots, keys, strict=True)]
        self.iteration += 1
        try:
            results = gather(pool, tasks)
        except TaskFailedError as error:
            raise self._explained(error) from error
        return [self._take_home(result) for result in results]


class AsyncGathering(Gathering):
    """The rollouts that come first; each slot is played again at once, while the learner learns.

    Args:
        max_lag: A rollout whose weights are older than this many versions is dropped.
    """

    def __init__(self, *args: Any, max_lag: int, **options: Any) -> None:
        super().__init__(*args, **options)
        self._max_lag = max_lag
        self._ready: deque[Rollout] = deque()
        self._num_dropped = 0
        self._lags: list[int] = []

    def next_rollouts(self) -> list[Rollout]:
        """Return the next rollouts that are fresh enough, and leave the workers with something to do."""
        pool = self._publish()
        busy = {key.slot for key in self._under_way}
        for slot in range(self._slot_envs.slots):
            if slot not in busy:
                self._submit(pool, slot)
        found: list[Rollout] = []
        while len(found) < self._slot_envs.slots:
            while not self._ready:
                self._receive(pool)
            rollout = self._ready.popleft()
            if self._version - rollout.version > self._max_lag:
                self._num_dropped += 1
            else:
                found.append(rollout)
        self._lags = [self._version - rollout.version for rollout in found]
        return found

    def metrics(self) -> dict[str, float]:
        """Return how the workers are, how old the weights of the last rollouts were, and how many were dropped."""
        lag = sum(self._lags) / max(len(self._lags), 1)
        return {**super().metrics(), "workers/dropped": float(self._num_dropped), "workers/lag": lag}

    def forget(self) -> None:
        """Take in nothing of what is under way, or has come and waits."""
        super().forget()
        self._ready.clear()

    def _submit(self, pool: WorkerPool, slot: int) -> None:
        (key,) = self._draw_keys(1)
        pool.submit(self._make_task(slot, self.iteration, key))
        self.iteration += 1

    def _receive(self, pool: WorkerPool) -> None:
        try:
            results = pool.poll()
        except TaskFailedError as error:
            raise self._explained(error) from error
        for result in results:
            if result.key not in self._under_way:
                continue  # of before a roll back
            self._ready.append(self._take_home(result))
            self._submit(pool, result.key.slot)
