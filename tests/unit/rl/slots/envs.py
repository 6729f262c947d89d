"""Environments for slots: some that cannot be saved, some that are slow, some that fail."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Any, ClassVar, Literal

import gymnasium
import numpy as np
from gymnasium import spaces

from hookloop.pools import MakePerformer
from hookloop.rl import PPO, Trainer, TrainerConfig, make_policy
from hookloop.rl.envs import Envs, SyncEnvs
from hookloop.rl.policies import Policy
from hookloop.rl.slots import RolloutPerformer, SlotEnvs, SlotSetup


class CountsUp(gymnasium.Env):
    """Shows how many steps the episode has, and ends after ten."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.observation_space = spaces.Box(0.0, 1e6, (1,), np.float32)
        self.action_space = spaces.Discrete(2)
        self.seconds = seconds
        self.steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.steps = 0
        return self.see(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict]:
        if self.seconds:
            time.sleep(self.seconds)
        self.steps += 1
        return self.see(), float(action), self.steps == 10, False, {}

    def see(self) -> np.ndarray:
        return np.array([self.steps], np.float32)


class Unsaved(CountsUp):
    """Keeps something that nobody can save."""

    def __init__(self) -> None:
        super().__init__()
        self.engine: Iterator[int] = (number for number in count())


class Failing(CountsUp):
    """Raises on its fifth step."""

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict]:
        if self.steps == 4:
            raise ZeroDivisionError("the fifth step")
        return super().step(action)


class Fragile(CountsUp):
    """Raises once, on its seventh step."""

    has_raised: ClassVar[bool] = False

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict]:
        if self.steps == 6 and not Fragile.has_raised:
            Fragile.has_raised = True
            raise ZeroDivisionError("once")
        return super().step(action)


KINDS = {
    "fragile": Fragile,
    "plain": CountsUp,
    "unsaved": Unsaved,
    "failing": Failing,
    "slow": partial(CountsUp, 0.001),
}


def make_envs(kind: str, num_envs: int) -> Envs:
    return SyncEnvs([KINDS[kind]() for _ in range(num_envs)])


def fitting_policy(envs: Envs) -> Policy:
    return make_policy(envs.observation, envs.action, hidden=(8,))


def performer_of(kind: str, *, envs_per_slot: int, horizon: int) -> MakePerformer:
    return partial(RolloutPerformer, partial(make_envs, kind, envs_per_slot), fitting_policy, horizon=horizon)


def trainer_of(
    kind: str,
    make_pool: Any,
    *,
    slots: int = 2,
    mode: Literal["exact", "async"] = "exact",
    horizon: int = 8,
    **config: Any,
) -> Trainer:
    """A trainer whose slots have one such environment each; ``make_pool(make_performer)`` makes who plays."""
    envs = SlotEnvs(make_envs(kind, 1), num_envs=slots, slots=slots)
    make = performer_of(kind, envs_per_slot=1, horizon=horizon)
    setup = SlotSetup(envs, lambda _payload, _weights: make_pool(make), mode)
    sizes = {"num_minibatches": 1, "update_epochs": 1, **config}
    return Trainer(
        policy=fitting_policy(envs),
        envs=envs,
        losses=[PPO()],
        config=TrainerConfig(horizon=horizon, **sizes),
        slots=setup,
    )
