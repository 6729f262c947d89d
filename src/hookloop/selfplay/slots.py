"""Games that are played as tasks, by any number of workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from torch import Tensor

from hookloop.rl.slots import Rollout, SlotCollector, SlotEnvs
from hookloop.selfplay.games import EndedGame, GameEnvs
from hookloop.selfplay.past_versions import PastPlayer
from hookloop.selfplay.performing import with_past
from hookloop.selfplay.ratings import Score
from hookloop.selfplay.tally import Outcome, Tally

Plain = Any


class GameSlotEnvs(SlotEnvs):
    """What the learner sees of games that are played elsewhere: where each stood when its rollout ended.

    Args:
        like: Games made the same way, in any number.
        num_envs: How many there are in all slots together.
        slots: How many slots.
    """

    def __init__(self, like: GameEnvs, *, num_envs: int, slots: int) -> None:
        super().__init__(like, num_envs=num_envs, slots=slots)
        self.game = like.game
        self._ended: tuple[list[int], Outcome, int] | None = None
        self._last_ended: EndedGame | None = None

    @property
    def last_ended(self) -> EndedGame | None:
        """The game that ended last; for looking at, and not saved. Its moves are made again for the look."""
        if self._last_ended is None and self._ended is not None:
            moves, outcome, played = self._ended
            state = self.game.new_initial_state()
            for move in moves:
                state.apply_action(move)
            self._last_ended = EndedGame(state, outcome, played)
        return self._last_ended

    def note_ended(self, moves: list[int], outcome: Outcome, played: int) -> None:
        """Take in a game that has ended where it was played."""
        self._ended, self._last_ended = (moves, outcome, played), None

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

    opponents: PastPlayer | None = None
    """Has the past version that plays in some of the games; by default none does."""

    @property
    def games(self) -> GameSlotEnvs:
        """The games that are played."""
        return cast("GameSlotEnvs", self.envs)

    @property
    def has_fillers(self) -> bool:
        """Whether some moves are not the policy's own, and nothing is learned from them."""
        return self.opponents is not None

    def weights(self) -> Mapping[str, Tensor]:
        """Return what the coming rollouts are played with: the policy's weights, and a past version's."""
        return with_past(super().weights(), self.opponents)

    def _write(self, rollouts: Sequence[Rollout]) -> None:
        super()._write(rollouts)
        if self.opponents is not None:
            self.opponents.score = sum((Score(*rollout.value["besides"]["score"]) for rollout in rollouts), Score())
        ended = [rollout.value for rollout in rollouts if rollout.value["besides"]["last_ended"] is not None]
        if ended:
            last = max(ended, key=_last_end)
            self.games.note_ended(*last["besides"]["last_ended"])


def _last_end(rollout: Mapping[str, Plain]) -> int:
    """Return on which step of a rollout the last of its games ended."""
    return rollout["episodes"][-1][0]
