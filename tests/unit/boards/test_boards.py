"""Boards: what a library writes of a position is read, marked and drawn; what it is not stays a text."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookloop.boards import Board, board_text, draw_board, marked, read_board, seat_names

GAMES = ("tic_tac_toe", "connect_four", "othello", "hex", "go", "chess", "shogi")

OTHELLO = """\
White (o) to play:
  a b c d e f g h\x20\x20
1 - - - - - - - - 1
2 - - - - - - - - 2
3 - - - - - - - - 3
4 - - x x x - - - 4
5 - - - x o - - - 5
6 - - - - - - - - 6
7 - - - - - - - - 7
8 - - - - - - - - 8
  a b c d e f g h\x20\x20
"""


def test_tic_tac_toe_is_drawn_with_the_last_move_in_brackets() -> None:
    before, board = read_board("tic_tac_toe", ".x.\n...\n..."), read_board("tic_tac_toe", ".x.\n.o.\n...")

    assert board_text(marked(board, "tic_tac_toe", "o(1,1)", before)) == "  0 1 2\n0 · X ·\n1 ·[O]·\n2 · · ·"


def test_connect_four_has_its_columns_below() -> None:
    before = read_board("connect_four", ".......\n" * 5 + "...x...\n")
    board = read_board("connect_four", ".......\n" * 4 + "...o...\n...x...\n")

    lines = board_text(marked(board, "connect_four", "o3", before)).splitlines()

    assert lines[-3:] == [" · · ·[○]· · ·", " · · · ● · · ·", " 0 1 2 3 4 5 6"]
    assert len(lines) == 7


def test_othello_marks_the_square_of_the_move_and_not_what_was_turned() -> None:
    board = marked(read_board("othello", OTHELLO), "othello", "c4")

    assert board.last == {(3, 2)}
    assert board_text(board).splitlines()[4] == "4 · ·[●]● ● · · ·"
    assert marked(board, "othello", "pass").last == frozenset()


def test_hex_is_slanted() -> None:
    board = marked(read_board("hex", ". x . \n . . o \n  . . . \n"), "hex", "c2")

    assert board_text(board) == "  a b c\n1 · ● ·\n 2 · ·[○]\n  3 · · ·"


def test_go_leaves_the_letter_i_out() -> None:
    rows = "".join(f" {rank} {'+' * 9}\n" for rank in range(9, 1, -1))
    text = f"GoState(komi=7.5, to_play=W, history.size()=1)\n\n{rows} 1 ++++++++X\n   ABCDEFGHJ\n"

    board = marked(read_board("go", text), "go", "B j1")

    assert board.last == {(8, 8)}
    assert board_text(board).splitlines()[-2:] == ["1 · · · · · · · ·[●]", "  a b c d e f g h j"]
    assert marked(board, "go", "W PASS").last == frozenset()


def test_chess_shows_white_below_and_marks_where_a_piece_came_from() -> None:
    before = read_board("chess", "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1")
    board = read_board("chess", "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1")

    lines = board_text(marked(board, "chess", "e4", before)).splitlines()

    assert lines[0] == "8 ♜ ♞ ♝ ♛ ♚ ♝ ♞ ♜"
    assert lines[4] == "4 · · · ·[♙]· · ·"
    assert lines[6] == "2 ♙ ♙ ♙ ♙[·]♙ ♙ ♙"
    assert lines[8] == "  a b c d e f g h"
    assert board.rows[0][0].seat == 0  # black is the first seat of OpenSpiel, and moves second
    assert seat_names("chess") == ("Black", "White")


def test_shogi_shows_promoted_pieces_and_what_is_in_hand() -> None:
    text = "lns5b/2pl5/1p2kp1+NP/3p1P1p1/2Glp1p2/p+r1PS1P1p/L2S3P1/NBG1K2R1/1N1G2S2 b PG3p 61"

    board = marked(read_board("shogi", text), "shogi", "9f8f+")

    lines = board_text(board, names=seat_names("shogi")).splitlines()
    assert lines[0] == "Gote holds 歩3"
    assert lines[1].split() == list("987654321")
    assert lines[2].startswith("a v香 v桂 v銀")
    assert lines[4].endswith(" 圭  歩")
    assert lines[7].startswith("f[v歩|v龍]")
    assert lines[-1] == "Sente holds 歩 金"
    in_letters = board_text(board, is_ascii=True, names=seat_names("shogi")).splitlines()
    assert in_letters[7] == "f[ p|+r] .  P  S  .  P  .  p"
    assert in_letters[-1] == "Sente holds P G"


def test_a_drop_marks_one_square() -> None:
    board = read_board("shogi", "9/9/9/9/4P4/9/9/9/9 w - 2")

    assert marked(board, "shogi", "P*5e").last == {(4, 4)}


def test_a_game_that_is_not_known_is_shown_as_it_is_written() -> None:
    board = read_board("mancala", "-0-2-\n15--18\n\x1b[2J")

    assert board == Board(text="-0-2-\n15--18\n\x1b[2J")
    assert board_text(board) == "-0-2-\n15--18\n?[2J"


@pytest.mark.parametrize("game", GAMES)
def test_a_text_of_another_form_stays_a_text(game: str) -> None:
    for text in ("", "nonsense", "xo\nx", "9" * 5000, "k" * 5000):
        assert read_board(game, text) == Board(text=text)


@given(
    game=st.sampled_from((*GAMES, "unknown")), text=st.text(alphabet="xXoO.+-/kPp19 b\nabc", max_size=200) | st.text()
)
def test_no_text_is_too_odd_to_be_drawn(game: str, text: str) -> None:
    board = marked(read_board(game, text), game, text, read_board(game, "..."))

    for line in draw_board(board, names=("one", "other")):
        assert all(ink.text.isprintable() for ink in line)


@pytest.mark.parametrize("game", [*GAMES[:3], "hex(board_size=5)", "go(board_size=5)", *GAMES[5:]])
def test_every_position_of_a_game_is_read_and_its_last_move_marked(game: str) -> None:
    pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel, the extra 'games', is not installed")
    loaded, draw = pyspiel.load_game(game), random.Random(0)
    name = loaded.get_type().short_name

    state = loaded.new_initial_state()
    before = read_board(name, str(state))
    for _ in range(80):
        if state.is_terminal():
            break
        action = draw.choice(state.legal_actions())
        move, mover = state.action_to_string(action), state.current_player()
        state.apply_action(action)
        board = marked(read_board(name, str(state)), name, move, before)
        assert board.rows
        assert "pass" in move.lower() or any(board.rows[row][column].seat == mover for row, column in board.last), move
        before = board
