"""Replays of games: a board after each move, in a terminal and in a page; and what is none of a game's."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from hookloop.replays import Replay, replay_page
from hookloop.replays.games import board_at, is_game, result
from hookloop.replays.text import step_line, step_screen, summary
from tests.unit.replays.episodes import episode, game


def page_data(replay: Replay) -> dict[str, Any]:
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', replay_page(replay), re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_a_game_is_summed_up_by_who_won() -> None:
    assert summary(game()) == "tic_tac_toe(), after 640 steps of training, X won, 5 moves"
    assert result(game(end="draw")) == "a draw"
    assert result(game(end="cut_off")) == "cut off without a winner"


def test_a_step_is_a_board_with_the_last_move_marked_and_the_moves_so_far() -> None:
    lines = step_screen(game(), 1)

    assert lines[:6] == ["step 2 of 5", "", "  0 1 2", "0 X[O]·", "1 · · ·", "2 · · ·"]
    assert "1 x(0,0)  2 o(0,1)" in lines
    assert step_line(game(), 1) == "step=2 move=o(0,1) reward=0 return=0 value=0.1"
    assert board_at(game(), 0).last == {(0, 0)}
    assert board_at(game(), 4).last == {(2, 0)}


def test_a_page_holds_boards_square_by_square() -> None:
    data = page_data(game())

    assert data["moves"] == ["x(0,0)", "o(0,1)", "x(1,0)", "o(1,1)", "x(2,0)"]
    board = data["game"]
    shown = [board["pieces"][piece]["symbol"] for piece in board["squares"][-1]]
    assert "".join(shown) == "XO·XO·X··"
    assert board["marks"][-1] == [[2, 0]]
    assert (board["width"], board["board"]["files"], board["hands"]) == (3, ["0", "1", "2"], [])


def test_a_game_of_an_unknown_form_is_shown_as_it_was_written() -> None:
    replay = game(game="something_new")

    assert page_data(replay)["boards"][1] == "xo.\n...\n..."
    assert "xo." in step_screen(replay, 1)


@pytest.mark.parametrize("missing", ["moves", "boards"])
def test_what_says_it_is_a_game_and_lacks_its_parts_is_shown_as_an_episode(missing: str) -> None:
    whole = game()
    replay = Replay(whole.about, {name: array for name, array in whole.arrays.items() if name != missing})

    assert not is_game(replay)
    assert "return" in summary(replay)
    assert step_screen(replay, 0)
    assert replay_page(replay)


def test_an_episode_is_no_game_and_numbers_are_no_boards() -> None:
    odd = game()
    odd = Replay(odd.about, {**odd.arrays, "boards": np.zeros((5, 9), np.float32)})

    assert not is_game(episode(boards=True))
    assert not is_game(odd)


def test_a_move_cannot_steer_a_terminal() -> None:
    whole = game()
    evil = np.frombuffer(b"\x1b[2J\x07\x00", np.uint8)
    replay = Replay(whole.about, {**whole.arrays, "moves": np.stack([evil] * 5)})

    for line in (step_line(replay, 0), *step_screen(replay, 0)):
        assert "\x1b" not in line
        assert "\x07" not in line
