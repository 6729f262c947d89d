"""Small problems that train in seconds to minutes on a laptop."""

from __future__ import annotations

from hookloop.rl.config import (
    EnvConfig,
    OptimizerConfig,
    PolicyConfig,
    PPOConfig,
    RLConfig,
    StateDependentExploration,
    TrainerConfig,
)
from hookloop.rl.values import Linear


def cartpole() -> RLConfig:
    """Balance a pole on a cart: solved in seconds."""
    return RLConfig(
        total_env_steps=300_000,
        stop_at_return=475.0,
        # A hundred episodes of 475 steps are half of the run, so a step has to be cheap: many environments at once, and
        # few passes at a high rate. Half the environments and eight passes take fewer steps, and twice the time.
        env=EnvConfig(id="CartPole-v1", num_envs=64),
        losses={"ppo": PPOConfig(clip=0.2, entropy_coefficient=0.0)},
        trainer=TrainerConfig(
            horizon=32,
            update_epochs=2,
            num_minibatches=8,
            gamma=0.98,
            gae_lambda=0.95,
            optimizer=OptimizerConfig(learning_rate=4e-3),
            values={"optimizer.learning_rate": Linear(4e-3, 4e-4)},
        ),
    )


def acrobot() -> RLConfig:
    """Swing a two-link arm above a line."""
    return RLConfig(
        total_env_steps=500_000,
        env=EnvConfig(id="Acrobot-v1", num_envs=16, normalise_observations=True),
        trainer=TrainerConfig(
            horizon=256, update_epochs=4, num_minibatches=16, gamma=0.99, gae_lambda=0.94,
            optimizer=OptimizerConfig(learning_rate=5e-4),
            values={"optimizer.learning_rate": Linear(5e-4, 0.0)},
        ),
    )  # fmt: skip


def pendulum() -> RLConfig:
    """Swing a pendulum up and hold it there, with continuous torque."""
    return RLConfig(
        total_env_steps=100_000,
        env=EnvConfig(id="Pendulum-v1", num_envs=4),
        policy=PolicyConfig(exploration=StateDependentExploration(resample_steps=4)),
        losses={"ppo": PPOConfig(entropy_coefficient=0.0)},
        trainer=TrainerConfig(
            horizon=1024, update_epochs=10, num_minibatches=64, gamma=0.9, gae_lambda=0.95,
            optimizer=OptimizerConfig(learning_rate=1e-3),
        ),
    )  # fmt: skip
