"""The self-play trainer: reinforcement learning in which the environment answers with the same policy."""

from __future__ import annotations

from typing import ClassVar, NoReturn, cast

from hookloop.errors import ConfigError, EvaluationError
from hookloop.rl.collector import Collector
from hookloop.rl.learner import Learner
from hookloop.rl.slots import SlotCollector
from hookloop.rl.trainer import Trainer
from hookloop.rl.workload import RLWorkload
from hookloop.selfplay.collecting import GameCollector, GameLearner, GameVtraceLearner, SelfPlayWorkload
from hookloop.selfplay.games import GameEnvs
from hookloop.selfplay.past_versions import PastVersions
from hookloop.selfplay.slots import GameSlotCollector
from hookloop.selfplay.statistics import GameSummary
from hookloop.selfplay.tally import Tally
from hookloop.selfplay.watching import GameWatch


class SelfPlayTrainer(Trainer):
    """Trains a policy in games against itself: ``envs`` are ``GameEnvs``, the rest is as in ``hookloop.rl.Trainer``."""

    collector_type: ClassVar[type[Collector]] = GameCollector
    learner_type: ClassVar[type[Learner]] = GameLearner
    workload_type: ClassVar[type[RLWorkload]] = SelfPlayWorkload
    slot_collector_type: ClassVar[type[SlotCollector]] = GameSlotCollector
    async_learner_type: ClassVar[type[Learner]] = GameVtraceLearner
    summary: GameSummary | None = None
    """What is known of games that have ended, for who looks at a game; ``GameStatisticsHook`` leaves it here."""

    @property
    def games(self) -> GameEnvs:
        """The games that are played; ``GameSlotEnvs`` if tasks play them."""
        return cast("GameEnvs", self.envs)

    @property
    def tally(self) -> Tally:
        """How the games of this run have ended so far."""
        return self.games.tally

    def watch_game(self) -> GameWatch:
        """Return what shows a game of this run whenever somebody looks, from any thread."""
        return GameWatch(self.games, self.experience, summary=lambda: self.summary)

    @property
    def opponents(self) -> PastVersions | None:
        """Past versions that play in some of the games; None if the policy plays all of them."""
        return cast("SelfPlayWorkload", self.workload).opponents

    def play_against(self, opponents: PastVersions) -> None:
        """Have past versions play in some of the games, from now on; before training, so that a resume finds them.

        Where tasks play the games, in which of them is up to their ``GamePerformer``.
        """
        if self.state.clocks.env_steps:
            raise ConfigError("Past versions play from the beginning of a run; call play_against before train.")
        cast("SelfPlayWorkload", self.workload).opponents = opponents
        cast("GameCollector", self.workload.collector).opponents = opponents.player

    def player(self) -> NoReturn:
        """Refuse: a game has no episodes of one player's own to score; matches measure strength."""
        raise EvaluationError(
            "A game is evaluated by matches, not by episodes: give the trainer a LeagueHook, or call "
            "play_match(game, NetworkPlayer(trainer.policy), make_opponent('random'), games=100)."
        )
