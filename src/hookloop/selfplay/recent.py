"""How the latest games ended: the difference between what is counted now, and what was counted some games ago."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from hookloop.selfplay.tally import Tally

Plain = Any

WINDOW = 100
"""Games that the window has at least, once there were as many."""


class RecentOutcomes:
    """Remembers earlier counts of one tally, and counts nothing itself.

    Args:
        window: Games to look back over; it is more by as many as end between two looks.
    """

    def __init__(self, window: int = WINDOW) -> None:
        self._window = window
        self._earlier: deque[Tally] = deque()

    def begin(self, tally: Tally) -> None:
        """Count from here, unless a saved state says from where."""
        if not self._earlier:
            self.note(tally)

    def note(self, tally: Tally) -> None:
        """Remember the counts of this moment; those that no window reaches back to are forgotten."""
        earlier = self._earlier
        if earlier and earlier[-1].games == tally.games:
            return
        earlier.append(Tally.sum([tally.state_dict()]))  # a copy: the tally counts on
        while len(earlier) > 1 and tally.games - earlier[1].games >= self._window:
            earlier.popleft()

    def counts(self) -> Tally:
        """Return how the games within the window ended, up to the latest count."""
        if not self._earlier:
            return Tally()
        begin, end = self._earlier[0].state_dict(), self._earlier[-1].state_dict()
        return Tally(**{name: end[name] - begin[name] for name in end})

    def state_dict(self) -> dict[str, Plain]:
        """Return the counts that are remembered."""
        return {"earlier": [tally.state_dict() for tally in self._earlier]}

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on from a saved state."""
        self._earlier = deque(Tally.sum([each]) for each in saved["earlier"])
