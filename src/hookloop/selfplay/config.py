"""What a run of self-play is made of, as typed, closed and frozen settings. No torch in here."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from hookloop.config.settings import Settings
from hookloop.rl.config import PPOConfig, RolloutSettings, TrainerConfig


class GameConfig(Settings):
    """Which game is played, and how many at once."""

    name: str = Field(description="Its name in OpenSpiel, such as connect_four or hex(board_size=5)")
    num_envs: int = Field(default=64, ge=1, description="Games played together")
    max_moves: int | None = Field(
        default=None, ge=1, description="Cut a game off after so many moves, without a winner; null: by the rules alone"
    )


class NetworkConfig(Settings):
    """The network that plays both seats."""

    kind: Literal["residual", "layers"] = Field(
        default="residual", description="Convolutions for boards, or plain layers"
    )
    blocks: int = Field(default=3, ge=0, description="Residual blocks")
    channels: int = Field(default=32, ge=1, description="Their width")
    hidden: tuple[int, ...] = Field(
        default=(128, 128), description="Widths of plain layers; a game that shows no board always has them"
    )


class SelfPlayConfig(RolloutSettings):
    """A whole run: what a recipe returns and ``hookloop train`` carries out."""

    workload: ClassVar[str] = "selfplay"

    total_env_steps: int = Field(default=1_000_000, ge=1, description="Moves in all, of both seats")
    game: GameConfig
    network: NetworkConfig = NetworkConfig()
    ppo: PPOConfig = PPOConfig(entropy_coefficient=0.01)
    trainer: TrainerConfig = TrainerConfig(gamma=1.0)
