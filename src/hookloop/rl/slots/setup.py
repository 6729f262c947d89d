"""From settings to slots: who plays them, and how their rollouts are gathered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch

from hookloop.errors import ConfigError
from hookloop.pools import InlinePool, MakePerformer, WorkerPool
from hookloop.rl.collector import Collector
from hookloop.rl.config import RolloutSettings
from hookloop.rl.envs import Envs
from hookloop.rl.policies import Policy
from hookloop.rl.slots.envs import SlotEnvs
from hookloop.rl.slots.gathering import AsyncGathering, ExactGathering, Gathering


@dataclass(frozen=True, slots=True)
class SlotSetup:
    """What a trainer needs to have its rollouts played as tasks."""

    envs: SlotEnvs
    """What the learner sees of the environments."""
    make_pool: Callable[[], WorkerPool]
    """Starts the workers, when the first rollouts are needed."""
    mode: Literal["exact", "async"] = "exact"
    max_lag: int = 1
    collector_type: type[Collector] = Collector
    """What collects in the workers."""

    def gather(self, envs: Envs, policy: Policy, generator: torch.Generator) -> Gathering:
        """Return who asks for the rollouts of environments with these wrappers."""
        if self.mode == "exact":
            return ExactGathering(self.make_pool, envs, self.envs, policy, generator)
        if policy.is_recurrent:
            raise ConfigError(
                "rollout_mode is 'async', but this policy has a memory, and how likely its old actions are now can only "
                "be told by playing the whole rollout again; use rollout_mode=exact, or memory=none."
            )
        return AsyncGathering(self.make_pool, envs, self.envs, policy, generator, max_lag=self.max_lag)


def make_setup(
    config: RolloutSettings,
    envs: SlotEnvs,
    make_performer: MakePerformer,
    *,
    collector_type: type[Collector] = Collector,
) -> SlotSetup:
    """Return what plays the slots of a run as its settings ask for."""
    if config.rollout_mode == "async" and config.workers == 0:
        raise ConfigError(
            "rollout_mode is 'async' with workers=0, but nobody could play while this process learns; "
            "give it workers, for example workers=1, or use rollout_mode=exact."
        )
    make_pool = partial(_make_pool, config, make_performer)
    return SlotSetup(envs, make_pool, config.rollout_mode, config.max_lag, collector_type)


def envs_in_slot(config: RolloutSettings, num_envs: int) -> int:
    """Return how many environments each slot has."""
    if num_envs % config.slots:
        fitting = [count for count in range(1, num_envs + 1) if num_envs % count == 0]
        raise ConfigError(
            f"{num_envs} environments do not go into {config.slots} slots evenly; set slots to one of "
            f"{', '.join(map(str, fitting))}, or change env.num_envs."
        )
    return num_envs // config.slots


def _make_pool(config: RolloutSettings, make_performer: MakePerformer) -> WorkerPool:
    return InlinePool(make_performer)
