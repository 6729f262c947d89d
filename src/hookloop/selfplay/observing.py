"""What a player sees of a position, written straight into a row of an array."""

from __future__ import annotations

from typing import Any

import numpy as np

from hookloop.rl.specs import Array
from hookloop.selfplay.library import Game, State

_BY_COLOUR = {"connect_four": (0, 1), "tic_tac_toe": (1, 2)}
"""Games that show stones by colour, and in which planes: the second seat sees them exchanged, so that a player's own
stones are always in the same plane."""


class Observer:
    """Writes observations of a game: its planes [C, H, W], and one more that is 1 for the second seat.

    Many games show the same planes to both players. The last plane tells them who is to move, whatever the
    game. A game whose observation is no planes gives one row of numbers, with the seat behind them.

    Args:
        game: The game.
    """

    def __init__(self, game: Game) -> None:
        import pyspiel  # type: ignore[import-not-found]  # an extra, and compiled: it has no types

        shape = tuple(game.observation_tensor_shape())
        self._shown_shape = shape if len(shape) == 3 else (game.observation_tensor_size(),)
        self.shape = (self._shown_shape[0] + 1, *self._shown_shape[1:])
        self._num_shown = self._shown_shape[0]
        # The library writes into memory of its own, once allocated; numpy looks at that without a copy.
        self._seen: Any = pyspiel._Observation(game, game.make_observer({}))
        self._shown: Array = np.frombuffer(self._seen, np.float32).reshape(self._shown_shape)
        self._colours = _BY_COLOUR.get(game.get_type().short_name)

    def write(self, state: State, seat: int, row: Array) -> None:
        """Write what a seat sees."""
        self._seen.set_from(state, seat)
        row[: self._num_shown] = self._shown
        if seat and self._colours is not None:
            one, other = self._colours
            row[one], row[other] = self._shown[other], self._shown[one]
        row[self._num_shown] = seat
