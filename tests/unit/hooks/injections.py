"""Numbers that are not finite, put where they hurt."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import torch

from hookloop.core import HookContext
from hookloop.rl import PPO, Trainer, TrainerConfig
from hookloop.rl.envs import Envs, WrappedEnvs, make_envs
from hookloop.rl.losses.base import SharedLossData
from hookloop.rl.policies import make_policy

BAD = (math.nan, math.inf, -math.inf)
HORIZON, NUM_ENVS, MINIBATCHES, UPDATE_EPOCHS = 16, 4, 4, 2
STEPS_PER_EPOCH = HORIZON * NUM_ENVS
OPTIMIZER_STEPS_PER_EPOCH = MINIBATCHES * UPDATE_EPOCHS


class BrokenEnvs(WrappedEnvs):
    """Environments one of whose rewards or observations is bad, once, at the ``at``-th vector step."""

    def __init__(self, envs: Envs, *, part: str, at: int, value: float, times: int = 1) -> None:
        super().__init__(envs)
        self._part, self._at, self._value, self._times = part, at, value, times
        self._steps = 0

    def step(self, actions: Any) -> None:
        self.envs.step(actions)
        self._steps += 1
        if self._at <= self._steps < self._at + self._times:
            target = self.envs.rewards if self._part == "rewards" else self.envs.obs
            assert isinstance(target, np.ndarray)
            target[1] = self._value


class BrokenGradients:
    """Spoils a gradient, or a parameter, at chosen calls of ``gradients``."""

    def __init__(self, part: str, at: tuple[int, ...], value: float) -> None:
        self._part, self._at, self._value = part, at, value
        self._calls = 0

    def on_gradients(self, ctx: HookContext) -> None:
        self._calls += 1
        if self._calls in self._at:
            parameter = list(ctx.model.parameters())[self._calls % 3]
            target = parameter.grad if self._part == "gradients" else parameter.data
            target.view(-1)[0] = self._value


class BrokenPPO(PPO):
    """An objective that is bad at one minibatch; its gradients are fine."""

    def __init__(self, at: int, value: float) -> None:
        super().__init__(name="ppo")
        self._at, self._value = at, value
        self._calls = 0

    def run_train(self, shared_loss_data: SharedLossData, trainer_state: Any) -> torch.Tensor:
        self._calls += 1
        loss = super().run_train(shared_loss_data, trainer_state)
        return loss + self._value if self._calls == self._at else loss


def trainer(*hooks: object, envs: Envs | None = None, loss: PPO | None = None, **config: Any) -> Trainer:
    """Return a small trainer on CartPole."""
    envs = envs if envs is not None else make_envs("CartPole-v1", NUM_ENVS, mode="sync")
    policy = make_policy(envs.observation, envs.action, hidden=(8,), seed=3)
    settings = TrainerConfig(horizon=HORIZON, num_minibatches=MINIBATCHES, update_epochs=UPDATE_EPOCHS, **config)
    return Trainer(policy=policy, envs=envs, losses=[loss or PPO()], config=settings, hooks=list(hooks), seed=1)


def broken_trainer(part: str, rng: random.Random, *hooks: object) -> Trainer:
    """Return a trainer in which ``part`` becomes bad once, somewhere in the first three epochs."""
    value = rng.choice(BAD)
    if part in ("observations", "rewards"):
        at = rng.randrange(3, 3 * HORIZON)  # the first two steps after a reset are checked by the environments
        return trainer(
            *hooks, envs=BrokenEnvs(make_envs("CartPole-v1", NUM_ENVS, mode="sync"), part=part, at=at, value=value)
        )
    at = rng.randrange(1, 3 * OPTIMIZER_STEPS_PER_EPOCH)
    if part == "loss":
        return trainer(*hooks, loss=BrokenPPO(at, value))
    return trainer(BrokenGradients(part, (at,), value), *hooks)


def is_healthy(trained: Trainer) -> bool:
    """Tell whether all weights and all of the optimizer's memory are finite."""
    return all(bool(tensor.isfinite().all()) for tensor in (*trained.optimizer.tensors, *trained.policy.parameters()))
