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
    opening_moves: int = Field(
        default=0, ge=0, description="Each game begins with up to so many moves at random, which nobody learns from"
    )


class NetworkConfig(Settings):
    """The network that plays both seats."""

    kind: Literal["residual", "windows", "layers"] = Field(
        default="residual",
        description="Convolutions for boards; or one look at every window, for stones in a row; or plain layers",
    )
    blocks: int = Field(default=3, ge=0, description="Residual blocks")
    channels: int = Field(default=32, ge=1, description="Their width, or how many features a window has")
    from_mover: bool = Field(
        default=False,
        description="Residual: see the board from the side of who moves, so that both seats learn as one; shogi, chess",
    )
    window: int = Field(default=4, ge=1, description="The side of a window, in squares")
    hidden: tuple[int, ...] = Field(
        default=(128, 128),
        min_length=1,
        description="Widths of plain layers, or of those over the windows; a game without a board always has them",
    )


class OpponentsConfig(Settings):
    """Past versions of the network that play in some of the games of training."""

    share: float = Field(
        default=0.0, ge=0, le=1, description="In which share of each slot's games; only the network's moves are learned"
    )
    capacity: int = Field(default=8, ge=1, description="How many versions are kept, the newest")
    every_epochs: int = Field(default=20, ge=1, description="Epochs after which a version is added")


class LeagueConfig(Settings):
    """When the strength of the network is measured in matches, and against whom. None of it changes training."""

    schedule: str | None = Field(
        default=None, description="When, such as 'every 20 epochs', and at the end; null: not at all"
    )
    games: int = Field(default=64, ge=2, multiple_of=2, description="Games of each match, half of them in each seat")
    opponents: tuple[str, ...] = Field(
        default=("random", "greedy"),
        min_length=1,
        description="Who never changes: random, greedy, search-2 and deeper; the first has rating 0",
    )
    capacity: int = Field(default=4, ge=1, description="Past versions kept to play against, the champion besides")
    opening_moves: int = Field(
        default=2, ge=0, description="Moves at random that matches between versions begin with, once for each seat"
    )
    promote_above: float = Field(
        default=0.5,
        ge=0,
        lt=1,
        description="The champion is replaced when the 95 % interval of the score against it is above this",
    )


class GameReplayConfig(Settings):
    """Which games are kept, to be looked at later. None of it changes training."""

    schedule: str | None = Field(
        default="every 60 seconds", description="When the game that ended last is kept, and at the end; null: never"
    )
    keep: int = Field(default=20, ge=1, description="The newest to keep")
    matches: bool = Field(
        default=True, description="Keep the last game of each match of an evaluation, too, and as many of those"
    )


class SelfPlayConfig(RolloutSettings):
    """A whole run: what a recipe returns and ``hookloop train`` carries out."""

    workload: ClassVar[str] = "selfplay"

    total_env_steps: int = Field(default=1_000_000, ge=1, description="Moves in all, of both seats")
    game: GameConfig
    network: NetworkConfig = NetworkConfig()
    ppo: PPOConfig = PPOConfig(entropy_coefficient=0.01)
    trainer: TrainerConfig = TrainerConfig(gamma=1.0)
    replays: GameReplayConfig = GameReplayConfig()
    opponents: OpponentsConfig = OpponentsConfig()
    evaluation: LeagueConfig = LeagueConfig()
