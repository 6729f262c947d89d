"""The self-play trainer: reinforcement learning in which the environment answers with the same policy."""

from __future__ import annotations

from typing import ClassVar, cast

from hookloop.rl.collector import Collector
from hookloop.rl.learner import Learner
from hookloop.rl.slots import SlotCollector
from hookloop.rl.trainer import Trainer
from hookloop.rl.workload import RLWorkload
from hookloop.selfplay.collecting import GameCollector, GameLearner, SelfPlayWorkload
from hookloop.selfplay.games import GameEnvs
from hookloop.selfplay.slots import GameSlotCollector
from hookloop.selfplay.tally import Tally


class SelfPlayTrainer(Trainer):
    """Trains a policy in games against itself: ``envs`` are ``GameEnvs``, the rest is as in ``hookloop.rl.Trainer``."""

    collector_type: ClassVar[type[Collector]] = GameCollector
    learner_type: ClassVar[type[Learner]] = GameLearner
    workload_type: ClassVar[type[RLWorkload]] = SelfPlayWorkload
    slot_collector_type: ClassVar[type[SlotCollector]] = GameSlotCollector

    @property
    def games(self) -> GameEnvs:
        """The games that are played."""
        return cast("GameEnvs", self.envs)

    @property
    def tally(self) -> Tally:
        """How the games of this run have ended so far."""
        return self.games.tally
