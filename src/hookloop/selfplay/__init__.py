"""Self-play: a policy learns a game of two players by playing both of them.

::

    import hookloop.selfplay as selfplay

    config = selfplay.SelfPlayConfig(game=selfplay.GameConfig(name="connect_four"))
    trainer = selfplay.build_trainer(config, seed=0)
    trainer.train(total_env_steps=1_000_000)

The names are imported when they are first used, so that a configuration can be read without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

_HOMES = {
    "BoardNetwork": "hookloop.selfplay.network",
    "EpisodeState": "hookloop.selfplay.step_manager",
    "GameConfig": "hookloop.selfplay.config",
    "GameEnvs": "hookloop.selfplay.games",
    "League": "hookloop.selfplay.league",
    "LeagueConfig": "hookloop.selfplay.config",
    "NetworkConfig": "hookloop.selfplay.config",
    "NetworkPlayer": "hookloop.selfplay.players",
    "OpponentPool": "hookloop.selfplay.pool",
    "OpponentsConfig": "hookloop.selfplay.config",
    "PastVersions": "hookloop.selfplay.past_versions",
    "RandomPlayer": "hookloop.selfplay.players",
    "Rating": "hookloop.selfplay.ratings",
    "Score": "hookloop.selfplay.ratings",
    "SearchPlayer": "hookloop.selfplay.players",
    "SelfPlayConfig": "hookloop.selfplay.config",
    "SelfPlayTrainer": "hookloop.selfplay.trainer",
    "StepManager": "hookloop.selfplay.step_manager",
    "StepResult": "hookloop.selfplay.step_manager",
    "Tally": "hookloop.selfplay.tally",
    "TrainingLoopManager": "hookloop.selfplay.loop_manager",
    "build_policy": "hookloop.selfplay.build",
    "build_trainer": "hookloop.selfplay.build",
    "fit_ratings": "hookloop.selfplay.rating_fit",
    "fitting_games": "hookloop.selfplay.library",
    "make_opponent": "hookloop.selfplay.players",
    "play_all_lines": "hookloop.selfplay.exhaustive",
    "play_match": "hookloop.selfplay.match",
    "rating_from": "hookloop.selfplay.ratings",
}

__all__ = [
    "BoardNetwork",
    "EpisodeState",
    "GameConfig",
    "GameEnvs",
    "League",
    "LeagueConfig",
    "NetworkConfig",
    "NetworkPlayer",
    "OpponentPool",
    "OpponentsConfig",
    "PastVersions",
    "RandomPlayer",
    "Rating",
    "Score",
    "SearchPlayer",
    "SelfPlayConfig",
    "SelfPlayTrainer",
    "StepManager",
    "StepResult",
    "Tally",
    "TrainingLoopManager",
    "build_policy",
    "build_trainer",
    "fit_ratings",
    "fitting_games",
    "make_opponent",
    "play_all_lines",
    "play_match",
    "rating_from",
]

if TYPE_CHECKING:
    from hookloop.selfplay.build import build_policy, build_trainer
    from hookloop.selfplay.config import GameConfig, LeagueConfig, NetworkConfig, OpponentsConfig, SelfPlayConfig
    from hookloop.selfplay.exhaustive import play_all_lines
    from hookloop.selfplay.games import GameEnvs
    from hookloop.selfplay.league import League
    from hookloop.selfplay.library import fitting_games
    from hookloop.selfplay.loop_manager import TrainingLoopManager
    from hookloop.selfplay.match import play_match
    from hookloop.selfplay.network import BoardNetwork
    from hookloop.selfplay.past_versions import PastVersions
    from hookloop.selfplay.players import NetworkPlayer, RandomPlayer, SearchPlayer, make_opponent
    from hookloop.selfplay.pool import OpponentPool
    from hookloop.selfplay.rating_fit import fit_ratings
    from hookloop.selfplay.ratings import Rating, Score, rating_from
    from hookloop.selfplay.step_manager import EpisodeState, StepManager, StepResult
    from hookloop.selfplay.tally import Tally
    from hookloop.selfplay.trainer import SelfPlayTrainer


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'hookloop.selfplay' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
