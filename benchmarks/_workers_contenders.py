"""Who collects in the benchmark of workers: pools, and the vector environments of gymnasium and SB3."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from _measure import is_importable
from _workers_work import OBS, Collector, CostlyEnv, Load, actions_for, network

from hookloop.pools import Task, TaskKey, WorkerPool, gather, make_pool


@dataclass(frozen=True, slots=True)
class Contender:
    """``collect()`` plays one rollout in every environment."""

    name: str
    collect: Callable[[], None]
    close: Callable[[], None]


class PoolCollecting:
    """A pool whose tasks are whole rollouts in a part of the environments; the policy acts where they are."""

    def __init__(self, workers: int, load: Load, *, envs: int, slots: int, steps: int) -> None:
        make = partial(Collector, load, envs // slots)
        self.pool: WorkerPool = make_pool("process", workers, make)
        self._slots, self._steps, self._version = slots, steps, 0
        self._weights = network().state_dict()

    def collect(self) -> None:
        self.pool.publish(self._version, self._weights)
        gather(self.pool, [
            Task(TaskKey(slot, self._version), {"seed": 1000 * slot, "steps": self._steps})
            for slot in range(self._slots)
        ])  # fmt: skip
        self._version += 1


class VectorCollecting:
    """All environments step together, each in a process of its own; the policy acts here."""

    def __init__(self, reset: Callable[[], np.ndarray], step: Callable[[np.ndarray], tuple], envs: int, steps: int):
        self._reset, self._step, self._steps = reset, step, steps
        self._policy = network()
        self._obs = np.empty((steps, envs, OBS), np.float32)
        self._actions, self._rewards = np.empty((steps, envs), np.int64), np.empty((steps, envs), np.float32)

    def collect(self) -> None:
        obs = self._reset()
        for step in range(self._steps):
            actions = actions_for(self._policy, obs)
            self._obs[step], self._actions[step] = obs, actions
            obs, self._rewards[step], *_ = self._step(actions)


def pool_contender(workers: int, load: Load, *, envs: int, slots: int, steps: int, name: str = "") -> Contender:
    collecting = PoolCollecting(workers, load, envs=envs, slots=slots, steps=steps)
    named = name or (f"{workers} worker{'s' * (workers > 1)}" if workers else "inline")
    return Contender(named, collecting.collect, collecting.pool.close)


def gymnasium_contender(load: Load, *, envs: int, steps: int) -> Contender:
    from gymnasium.vector import AsyncVectorEnv

    vector = AsyncVectorEnv([partial(CostlyEnv, load)] * envs, shared_memory=True, context="forkserver")
    collecting = VectorCollecting(lambda: vector.reset(seed=0)[0], vector.step, envs, steps)
    return Contender("gymnasium async", collecting.collect, vector.close)


def sb3_contender(load: Load, *, envs: int, steps: int) -> Contender | None:
    if not is_importable("stable_baselines3"):
        return None
    from stable_baselines3.common.vec_env import SubprocVecEnv

    vector = SubprocVecEnv([partial(CostlyEnv, load)] * envs, start_method="forkserver")

    def reset() -> np.ndarray:
        vector.seed(0)
        return vector.reset()

    collecting = VectorCollecting(reset, vector.step, envs, steps)
    return Contender("SB3 SubprocVecEnv", collecting.collect, vector.close)


def ray_contender(load: Load, *, envs: int, slots: int, steps: int, workers: int) -> Contender | None:
    if not is_importable("ray"):
        return None
    import ray

    ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, ignore_reinit_error=True)
    remote = ray.remote(Collector)
    actors = [remote.remote(load, envs // slots) for _ in range(workers)]
    weights = network().state_dict()

    def collect() -> None:
        reference = ray.put(weights)
        ray.get([actor.take_weights.remote(0, reference) for actor in actors])
        ray.get([
            actors[slot % workers].perform.remote({"seed": 1000 * slot, "steps": steps}) for slot in range(slots)
        ])  # fmt: skip

    return Contender("ray actors", collect, lambda: [ray.kill(actor) for actor in actors] and None)
