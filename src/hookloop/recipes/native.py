"""Problems whose environments are native code: they need the extra ``envpool``."""

from __future__ import annotations

from hookloop.rl.config import EnvConfig, OptimizerConfig, PolicyConfig, PPOConfig, RLConfig, TrainerConfig


def lunarlander() -> RLConfig:
    """Land a module between two flags (EnvPool)."""
    return RLConfig(
        total_env_steps=1_000_000,
        env=EnvConfig(id="LunarLander-v3", num_envs=16, mode="envpool"),
        losses={"ppo": PPOConfig(entropy_coefficient=0.01)},
        trainer=TrainerConfig(
            horizon=1024, update_epochs=4, num_minibatches=256, gamma=0.999, gae_lambda=0.98,
            optimizer=OptimizerConfig(learning_rate=3e-4),
        ),
    )  # fmt: skip


def minigrid() -> RLConfig:
    """Find the goal of a small empty room from what an agent sees ahead of it (EnvPool)."""
    return RLConfig(
        total_env_steps=200_000,
        env=EnvConfig(id="MiniGrid-Empty-5x5-v0", num_envs=16, mode="envpool"),
        policy=PolicyConfig(activation="relu"),
        losses={"ppo": PPOConfig(entropy_coefficient=0.02)},
        trainer=TrainerConfig(
            horizon=128, update_epochs=4, num_minibatches=4, gamma=0.99, gae_lambda=0.95,
            optimizer=OptimizerConfig(learning_rate=3e-4),
        ),
    )  # fmt: skip
