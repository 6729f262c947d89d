"""Games that are learned by playing both sides."""

from __future__ import annotations

from hookloop.config.settings import CheckpointConfig
from hookloop.rl.config import OptimizerConfig, PPOConfig, TrainerConfig
from hookloop.selfplay.config import GameConfig, NetworkConfig, SelfPlayConfig

# What the first seat wins on average says nothing of strength, so no checkpoint is the best one by it.
_NO_BEST = CheckpointConfig(keep_best=0)


def tictactoe() -> SelfPlayConfig:
    """Play tic-tac-toe against oneself."""
    return SelfPlayConfig(
        total_env_steps=200_000,
        game=GameConfig(name="tic_tac_toe", num_envs=64),
        network=NetworkConfig(kind="layers", hidden=(128, 128)),
        ppo=PPOConfig(entropy_coefficient=0.03),
        trainer=TrainerConfig(
            horizon=32, update_epochs=3, num_minibatches=8, gamma=1.0, gae_lambda=0.9,
            optimizer=OptimizerConfig(learning_rate=1e-3),
        ),
        checkpoints=_NO_BEST,
    )  # fmt: skip


def connect4() -> SelfPlayConfig:
    """Play connect four against oneself."""
    return SelfPlayConfig(
        total_env_steps=1_000_000,
        game=GameConfig(name="connect_four", num_envs=64),
        network=NetworkConfig(kind="layers", hidden=(256, 256)),
        ppo=PPOConfig(entropy_coefficient=0.01),
        trainer=TrainerConfig(
            horizon=64, update_epochs=3, num_minibatches=8, gamma=1.0, gae_lambda=0.9,
            optimizer=OptimizerConfig(learning_rate=1e-3),
        ),
        checkpoints=_NO_BEST,
    )  # fmt: skip


def shogi() -> SelfPlayConfig:
    """Play shogi against oneself (3 blocks of 32 channels)."""
    return SelfPlayConfig(
        total_env_steps=5_000_000,
        game=GameConfig(name="shogi", num_envs=64, max_moves=512),
        network=NetworkConfig(kind="residual", blocks=3, channels=32),
        ppo=PPOConfig(entropy_coefficient=0.01),
        trainer=TrainerConfig(
            horizon=32, update_epochs=1, num_minibatches=4, gamma=1.0, gae_lambda=0.9,
            optimizer=OptimizerConfig(learning_rate=1e-3),
        ),
        checkpoints=_NO_BEST,
    )  # fmt: skip


def selfplay() -> SelfPlayConfig:
    """Play any game of OpenSpiel for two who see everything: game=NAME, such as game=othello."""
    return SelfPlayConfig(game=GameConfig(name="connect_four"), checkpoints=_NO_BEST)
