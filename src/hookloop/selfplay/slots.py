"""Games that are played as tasks, by any number of workers."""

from __future__ import annotations

from typing import cast

from hookloop.rl.slots import SlotCollector, SlotEnvs
from hookloop.selfplay.games import GameEnvs
from hookloop.selfplay.tally import Tally


class GameSlotEnvs(SlotEnvs):
    """What the learner sees of games that are played elsewhere: where each stood when its rollout ended.

    Args:
        like: Games made the same way, in any number.
        num_envs: How many there are in all slots together.
        slots: How many slots.
    """

    last_ended = None
    """Of the games that ended within a rollout, the moves have stayed where it was played."""

    def __init__(self, like: GameEnvs, *, num_envs: int, slots: int) -> None:
        super().__init__(like, num_envs=num_envs, slots=slots)
        self.game = like.game

    def history(self, row: int) -> list[int] | None:
        """Return the moves of a game so far; None before the first rollout."""
        slot, index = divmod(row, self.envs_per_slot)
        if self.places[slot] is None:
            return None
        saved = self.places[slot]["envs"]["envs"]
        ends = saved["lengths"].cumsum()
        return saved["moves"][ends[index] - saved["lengths"][index] : ends[index]].tolist()

    @property
    def tally(self) -> Tally:
        """How the games of all slots have ended so far."""
        return Tally.sum(place["envs"]["envs"]["tally"] for place in self.places if place is not None)


class GameSlotCollector(SlotCollector):
    """Fills the experience with the moves of both seats, as tasks have made them."""

    opponents = None

    @property
    def games(self) -> GameSlotEnvs:
        """The games that are played."""
        return cast("GameSlotEnvs", self.envs)
