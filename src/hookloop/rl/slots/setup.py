"""From settings to slots: who plays them, and how their rollouts are gathered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from hookloop.errors import ConfigError
from hookloop.pools import MakePerformer, WorkerPool, WorkersChoice, choose_workers
from hookloop.pools.making import open_pool
from hookloop.pools.measuring import measure_costs, usable_cores
from hookloop.rl.collector import Collector
from hookloop.rl.config import RolloutSettings
from hookloop.rl.envs import Envs
from hookloop.rl.envs.random_actions import random_actions
from hookloop.rl.policies import Policy
from hookloop.rl.slots.envs import SlotEnvs
from hookloop.rl.slots.gathering import AsyncGathering, ExactGathering, Gathering, GiveWeights, MakePool
from hookloop.rl.slots.pinning import PinnedPools

Plain = Any


@dataclass(frozen=True, slots=True)
class SlotSetup:
    """What a trainer needs to have its rollouts played as tasks."""

    envs: SlotEnvs
    """What the learner sees of the environments."""
    make_pool: MakePool
    """Starts the workers, when the first rollouts are needed."""
    mode: Literal["exact", "async"] = "exact"
    max_lag: int = 1
    collector_type: type[Collector] = Collector
    """What collects in the workers."""

    def gather(self, envs: Envs, policy: Policy, generator: torch.Generator, weights: GiveWeights) -> Gathering:
        """Return who asks for the rollouts of environments with these wrappers."""
        if self.mode == "exact":
            return ExactGathering(self.make_pool, envs, self.envs, weights, generator)
        if policy.is_recurrent:
            raise ConfigError(
                "rollout_mode is 'async', but this policy has a memory, and how likely its old actions are now can "
                "only be told by playing the whole rollout again; use rollout_mode=exact, or memory=none."
            )
        return AsyncGathering(self.make_pool, envs, self.envs, weights, generator, max_lag=self.max_lag)


def make_setup(
    config: RolloutSettings,
    envs: SlotEnvs,
    make_performer: MakePerformer,
    *,
    can_move: bool = True,
    collector_type: type[Collector] = Collector,
) -> SlotSetup:
    """Return what plays the slots of a run as its settings ask for.

    Args:
        config: The settings.
        envs: What the learner sees of the environments.
        make_performer: Makes what plays, in each worker.
        can_move: Whether environments can be saved, and so be played by another worker in the next iteration.
        collector_type: What collects in the workers.
    """
    if config.rollout_mode == "async" and config.workers == 0:
        raise ConfigError(
            "rollout_mode is 'async' with workers=0, but nobody could play while this process learns; "
            "give it workers, for example workers=1, or use rollout_mode=exact."
        )
    if isinstance(config.workers, int) and config.workers > config.slots:
        raise ConfigError(
            f"workers is {config.workers}, but there are {config.slots} slots, and a slot is played by one worker at a "
            f"time; set workers to {config.slots} at most, or slots to {config.workers}, which makes it another run."
        )
    maker = PoolMaker(config, make_performer, can_move)
    return SlotSetup(envs, maker, config.rollout_mode, config.max_lag, collector_type)


def envs_in_slot(config: RolloutSettings, num_envs: int) -> int:
    """Return how many environments each slot has."""
    if num_envs % config.slots:
        fitting = [count for count in range(1, num_envs + 1) if num_envs % count == 0]
        raise ConfigError(
            f"{num_envs} environments do not go into {config.slots} slots evenly; set slots to one of "
            f"{', '.join(map(str, fitting))}, or change env.num_envs."
        )
    return num_envs // config.slots


def can_be_saved(envs: Envs) -> bool:
    """Tell whether environments can be saved, after a first step, in which many make what they are made of."""
    envs.reset(0)
    envs.step(random_actions(envs.action, envs.num_envs, np.random.default_rng(0), envs.action_masks))
    return not envs.inexact_because


@dataclass(frozen=True, slots=True)
class PoolMaker:
    """Starts the workers that settings ask for."""

    config: RolloutSettings
    make_performer: MakePerformer
    can_move: bool

    def __call__(self, payload: Plain, weights: Mapping[str, Tensor]) -> WorkerPool:
        """Start them; the payload and the weights are like those to come."""
        config, workers = self.config, self.config.workers
        if not isinstance(workers, int):
            workers = config.slots if config.cluster != "local" else self.choose(payload, weights).workers
            workers = max(workers, 1) if config.rollout_mode == "async" else workers
        if workers < 2 or self.can_move:
            return open_pool(config, workers, self.make_performer)
        return PinnedPools(partial(open_pool, config, 1, self.make_performer), workers)

    def choose(self, payload: Plain, weights: Mapping[str, Tensor]) -> WorkersChoice:
        """Play a rollout here a few times, for nothing but its time, and return how many workers are worth it."""
        costs = measure_costs(self.make_performer, payload, weights)
        return choose_workers(costs, tasks=self.config.slots, cores=usable_cores(), most=self.config.slots)
