"""From settings to a trainer."""

from __future__ import annotations

from collections.abc import Sequence

from hookloop.core import HookManager, derive_seed
from hookloop.core.signals import SECOND
from hookloop.rl.config import EnvConfig, RLConfig
from hookloop.rl.envs import Envs, NormalizedObservations, NormalizedRewards, make_envs
from hookloop.rl.losses import PPO
from hookloop.rl.policies import make_policy
from hookloop.rl.trainer import Trainer


def build_trainer(
    config: RLConfig, *, hooks: HookManager | Sequence[object] = (), seed: int = 0, second_signal: SECOND = "raise"
) -> Trainer:
    """Build everything a run needs; every random number in it follows from ``seed``."""
    envs = build_envs(config.env, gamma=config.trainer.gamma)
    policy = make_policy(
        envs.observation,
        envs.action,
        hidden=config.policy.hidden,
        activation=config.policy.activation,
        memory=config.policy.memory,
        exploration=config.policy.exploration,
        seed=derive_seed(seed, "policy"),
    )
    losses = [PPO(name=name, **loss.model_dump(exclude={"kind"})) for name, loss in config.losses.items()]
    return Trainer(
        policy=policy,
        envs=envs,
        losses=losses,
        config=config.trainer,
        hooks=hooks,
        seed=seed,
        second_signal=second_signal,
    )


def build_envs(config: EnvConfig, *, gamma: float) -> Envs:
    """Build the environments of a run."""
    envs: Envs = make_envs(config.id, config.num_envs, mode=config.mode, kwargs=config.kwargs)
    if config.normalise_observations:
        envs = NormalizedObservations(envs)
    if config.normalise_rewards:
        envs = NormalizedRewards(envs, gamma=gamma)
    return envs
