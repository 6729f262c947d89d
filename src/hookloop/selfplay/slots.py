"""Games that are played as tasks, by any number of workers."""

from __future__ import annotations

from typing import cast

from hookloop.rl.slots import SlotCollector, SlotEnvs
from hookloop.selfplay.tally import Tally


class GameSlotEnvs(SlotEnvs):
    """What the learner sees of games that are played elsewhere."""

    @property
    def tally(self) -> Tally:
        """How the games of all slots have ended so far."""
        return Tally.sum(place["envs"]["envs"]["tally"] for place in self.places if place is not None)


class GameSlotCollector(SlotCollector):
    """Fills the experience with the moves of both seats, as tasks have made them."""

    @property
    def games(self) -> GameSlotEnvs:
        """The games that are played."""
        return cast("GameSlotEnvs", self.envs)
