"""Every reply of an opponent, in both seats."""

from __future__ import annotations

import numpy as np
import pytest

from hookloop.errors import ConfigError

pytest.importorskip("pyspiel", reason="OpenSpiel, the extra 'games', is not installed")

from hookloop.rl.specs import Array
from hookloop.selfplay.exhaustive import play_all_lines
from hookloop.selfplay.games import GameEnvs
from hookloop.selfplay.players import SearchPlayer


class FirstMove:
    """Makes the first legal move."""

    def choose(self, games: GameEnvs, rows: Array) -> Array:
        return games.masks[rows].argmax(axis=1)


class Perfect:
    """Looks at the whole game, and takes the first of the best moves."""

    def choose(self, games: GameEnvs, rows: Array) -> Array:
        return np.array([SearchPlayer(9).choose(games, np.array([row]))[0] for row in rows])


def test_every_line_of_a_small_game_is_played_and_counted() -> None:
    # Hex on 2 x 2: whoever begins with square 1 or 2 wins. Who takes the first square free, begins with 0.
    score = play_all_lines("hex(board_size=2)", FirstMove())

    assert score.losses > 0
    assert score.draws == 0, "there are none in hex"
    assert score.wins > 0


def test_a_perfect_player_of_tic_tac_toe_loses_no_line() -> None:
    score = play_all_lines("tic_tac_toe", Perfect())

    assert score.losses == 0
    assert score.wins > score.draws > 0


def test_who_does_not_look_loses_somewhere() -> None:
    assert play_all_lines("tic_tac_toe", FirstMove()).losses > 0


def test_a_large_game_is_refused() -> None:
    with pytest.raises(ConfigError, match="for small games"):
        play_all_lines("connect_four", FirstMove(), max_lines=100)
