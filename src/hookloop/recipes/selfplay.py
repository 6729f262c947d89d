"""Games that are learned by playing both sides."""

from __future__ import annotations

from hookloop.config.settings import CheckpointConfig
from hookloop.rl.config import TrainerConfig
from hookloop.rl.values import Linear
from hookloop.selfplay.config import GameConfig, LeagueConfig, NetworkConfig, SelfPlayConfig

# What the first seat wins on average says nothing of strength; the rating does.
_BY_RATING = CheckpointConfig(metric="eval/rating")
# A discount a little below 1: a win is worth more the sooner it comes, and so is played for.
_QUICKLY = 0.99
# A policy that becomes sure of itself too soon plays few games over and over, and is lost elsewhere.
_RATE, _ENTROPY = "optimizer.learning_rate", "losses.ppo.entropy_coefficient"


def tictactoe() -> SelfPlayConfig:
    """Play tic-tac-toe against oneself."""
    return SelfPlayConfig(
        total_env_steps=400_000,
        game=GameConfig(name="tic_tac_toe", num_envs=64, opening_moves=5),
        network=NetworkConfig(kind="layers", hidden=(128, 128)),
        trainer=TrainerConfig(
            horizon=32, update_epochs=3, num_minibatches=8, gamma=_QUICKLY, gae_lambda=0.9,
            values={_RATE: Linear(2e-3, 1e-4), _ENTROPY: Linear(0.05, 0.01)},
        ),
        evaluation=LeagueConfig(schedule="every 20 epochs", opponents=("random", "greedy", "search-2")),
        checkpoints=_BY_RATING,
    )  # fmt: skip


def connect4() -> SelfPlayConfig:
    """Play connect four against oneself."""
    return SelfPlayConfig(
        total_env_steps=2_500_000,
        game=GameConfig(name="connect_four", num_envs=64, opening_moves=4),
        network=NetworkConfig(kind="windows", window=4, channels=64, hidden=(128,)),
        trainer=TrainerConfig(
            horizon=64, update_epochs=3, num_minibatches=16, gamma=_QUICKLY, gae_lambda=0.95,
            values={_RATE: Linear(1.5e-3, 1e-4), _ENTROPY: Linear(0.03, 0.015)},
        ),
        evaluation=LeagueConfig(schedule="every 40 epochs", opponents=("random", "greedy", "search-2")),
        checkpoints=_BY_RATING,
    )  # fmt: skip


def shogi() -> SelfPlayConfig:
    """Play shogi against oneself."""
    return SelfPlayConfig(
        total_env_steps=1_000_000,
        # Hardly a game ends at first: they begin anywhere, and what is learned from an end is its last moves.
        game=GameConfig(name="shogi", num_envs=64, max_moves=320, opening_moves=100),
        network=NetworkConfig(kind="residual", blocks=1, channels=16, from_mover=True),
        trainer=TrainerConfig(
            horizon=32, update_epochs=1, num_minibatches=8, gamma=0.98, gae_lambda=0.8,
            values={_RATE: Linear(2e-3, 5e-4), _ENTROPY: Linear(1e-3, 1e-3)},
        ),
        evaluation=LeagueConfig(schedule="every 100 epochs", games=32),
        checkpoints=_BY_RATING,
    )  # fmt: skip


def selfplay() -> SelfPlayConfig:
    """Play any game of OpenSpiel for two who see everything: game=NAME, such as game=othello."""
    return SelfPlayConfig(
        game=GameConfig(name="connect_four"),
        evaluation=LeagueConfig(schedule="every 40 epochs"),
        checkpoints=_BY_RATING,
    )
