"""Reinforcement learning: environments, policies, composable losses, and the trainer that joins them.

::

    import hookloop.rl as rl

    envs = rl.make_envs("CartPole-v1", num_envs=8)
    policy = rl.make_policy(envs.observation, envs.action)
    trainer = rl.Trainer(policy=policy, envs=envs, losses=[rl.PPO()])
    result = trainer.train(total_env_steps=100_000)

The names are imported when they are first used, so that a configuration can be read without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

_HOMES = {
    "Experience": "hookloop.rl.experience",
    "Kickstart": "hookloop.rl.losses",
    "Loss": "hookloop.rl.losses",
    "PPO": "hookloop.rl.losses",
    "Policy": "hookloop.rl.policies",
    "RLConfig": "hookloop.rl.config",
    "SharedLossData": "hookloop.rl.losses",
    "StateDependentExploration": "hookloop.rl.config",
    "TrainResult": "hookloop.rl.trainer",
    "Trainer": "hookloop.rl.trainer",
    "TrainerConfig": "hookloop.rl.config",
    "build_trainer": "hookloop.rl.build",
    "epoch_gate": "hookloop.rl.losses",
    "make_envs": "hookloop.rl.envs",
    "make_policy": "hookloop.rl.policies",
    "wrap_envs": "hookloop.rl.envs",
}

__all__ = [
    "PPO",
    "Experience",
    "Kickstart",
    "Loss",
    "Policy",
    "RLConfig",
    "SharedLossData",
    "StateDependentExploration",
    "TrainResult",
    "Trainer",
    "TrainerConfig",
    "build_trainer",
    "epoch_gate",
    "make_envs",
    "make_policy",
    "wrap_envs",
]

if TYPE_CHECKING:
    from hookloop.rl.build import build_trainer
    from hookloop.rl.config import RLConfig, StateDependentExploration, TrainerConfig
    from hookloop.rl.envs import make_envs, wrap_envs
    from hookloop.rl.experience import Experience
    from hookloop.rl.losses import PPO, Kickstart, Loss, SharedLossData, epoch_gate
    from hookloop.rl.policies import Policy, make_policy
    from hookloop.rl.trainer import Trainer, TrainResult


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'hookloop.rl' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
