"""A game on the terminal: a whole board or none, beside what is known of the games before it."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console

from hookloop.boards import Board, GameView, Move, marked, read_board, seat_names
from hookloop.display import Curve, LiveDisplay, RunView, draw, plain_line
from hookloop.display.canvas import ASCII

SHOGI = "lnsgkgsnl/1r5b1/pppppp1pp/6p2/9/2P6/PP1PPPPPP/1B5R1/LNSGKGSNL b - 3"
GAME = GameView(
    game="shogi",
    board=marked(read_board("shogi", SHOGI), "shogi", "3c3d"),
    seats=seat_names("shogi"),
    moves=(Move(1, 0, "7g7f"), Move(2, 1, "3c3d")),
    tally={"first_wins": 48, "second_wins": 43, "draws": 4, "cut_off": 5},
    buffered=(16, 64),
)
VIEW = RunView(
    run="mine", recipe="shogi", device="cpu", num_envs=64, step=4096, total_steps=10_000, elapsed_seconds=360.0,
    phases={"collect": 0.6, "train": 0.3}, hooks={"stats": 0.01}, game=GAME,
    curves={
        "return/mean": Curve(0.05, (0.0, 0.05)), "episode/length": Curve(112.3, (100.0, 112.3)),
        "game/first_wins": Curve(0.48, (0.4, 0.48)), "game/count": Curve(100.0, (50.0, 100.0)),
        "eval/rating": Curve(1034.0, (1000.0, 1034.0)), "losses/ppo/value": Curve(3.41, (4.0, 3.41)),
    },
)  # fmt: skip


TOLD = replace(
    GAME, material=(63.0, 60.0), is_check=True, king_moves=2, quiet_moves=12,
    recent={"first_wins": 60, "second_wins": 30, "draws": 10, "cut_off": 0},
    statistics={
        "looked_at": 12.0, "first_captures": 21.5, "second_captures": 21.3, "first_drops": 20.3, "second_drops": 19.2,
        "first_checks": 6.25, "second_checks": 4.3, "first_promotions": 6.7, "second_promotions": 106.3,
        "first_king_moves": 3.7, "best_capture": 10.5, "longest_quiet": 27.7, "lead": -6.3, "opening_share": 0.25,
    },
    hot_squares=(("5e", 40), ("4d", 31)), opening=("7g7f", "3c3d", "2g2f"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("width", "height"), [(138, 40), (118, 25), (78, 24), (118, 24), (60, 12), (40, 10), (20, 4), (1, 1)]
)
@pytest.mark.parametrize("glyphs", ["unicode", "ascii"])
@pytest.mark.parametrize("game", [GAME, TOLD], ids=["plain", "told"])
def test_it_fits_whatever_the_terminal(width: int, height: int, glyphs: str, game: GameView) -> None:
    view = replace(VIEW, game=game)
    canvas = draw(view, width, height, ASCII) if glyphs == "ascii" else draw(view, width, height)

    assert len(canvas.lines) <= max(height - 1, 1)
    assert all(cell_len(line.text) <= width for line in canvas.lines)
    assert glyphs != "ascii" or canvas.text.isascii()


@pytest.mark.parametrize(("width", "height"), [(138, 40), (118, 25)])
def test_a_panel_shows_board_moves_outcomes_length_buffer_and_rating(width: int, height: int) -> None:
    seen = draw(VIEW, width, height).text

    assert seen.startswith("╭")
    assert "[v歩]" in seen
    assert "Gote holds nothing" in seen
    for words in ("1 7g7f", "2 3c3d", "shogi · 100 games, 1,000 an hour", "moves a game", "112.3", "1,034", "16/64",
                  "return/mean"):  # fmt: skip
        assert words in seen
    for name, count, share in (("Sente wins", 48, "48 %"), ("Gote wins", 43, "43 %"), ("draws", 4, "4.0 %")):
        assert f"{name:<14}{count:>9}{share:>8}" in seen
    assert "game/first_wins" not in seen  # its curve stands beside the board


def test_a_large_panel_shows_all_statistics_beside_the_board() -> None:
    seen = draw(replace(VIEW, game=TOLD), 138, 40).text

    for words in (
        "check · material 63 : 60 · quiet 12 · king 2",
        "last 100          60 %    30 %    10 %   0.0 %",
        "captures   21.5 : 21.3  drops      20.3 : 19.2",
        "checks       6.2 : 4.3  promotions 6.7 : 106.3",
        "king moves     3.7 : -  best taken        10.5",
        "most quiet        27.7  final lead        -6.3",
        "opening       7g7f  3c3d  2g2f 25 %",
        "hot squares   5e 4d · of 12 games",
    ):
        assert words in seen


def test_a_smaller_panel_shows_what_matters_most_and_the_metrics_stay() -> None:
    seen = draw(replace(VIEW, game=TOLD), 118, 25).text

    for words in ("check · material 63 : 60", "last 100", "captures   21.5 : 21.3", "opening", "losses/ppo/value"):
        assert words in seen
    assert "final lead" not in seen


def test_the_compact_form_has_them_in_one_line() -> None:
    lines = draw(replace(VIEW, game=TOLD), 110, 24).text.splitlines()

    found = (
        "check · material 63 : 60 · quiet 12 · king 2 · captures 21.5 : 21.3 · opening 7g7f  3c3d  2g2f 25 % · hot 5e"
    )
    assert found in [line.strip() for line in lines]
    assert sum("captures" in line for line in lines) == 1


def test_what_a_game_does_not_have_is_not_shown() -> None:
    seen = draw(VIEW, 138, 40).text

    for words in ("material", "check ", "quiet", "captures", "opening", "hot squares", "last "):
        assert words not in seen


def test_a_small_terminal_shows_the_whole_board_and_the_rest_in_few_lines() -> None:
    seen = draw(VIEW, 78, 24).text

    assert not seen.startswith("╭")
    assert seen.splitlines()[0].startswith("mine · shogi")
    assert (
        "shogi 100 games, 1,000 an hour · Sente wins 48 % · Gote wins 43 % · draws 4.0 % · cut off 5.0 %"
        in draw(VIEW, 100, 24).text
    )
    board = [line for line in seen.splitlines() if line[:1] in "abcdefghi" and line[1:2] in " ["]
    assert len(board) == 9


def test_half_a_board_is_none_and_the_moves_are_shown_instead() -> None:
    seen = draw(VIEW, 60, 12).text

    assert "香" not in seen
    assert "1 7g7f    2 3c3d" in seen


def test_a_board_that_is_too_high_for_a_panel_leaves_the_figures() -> None:
    large = replace(VIEW, game=replace(GAME, board=Board(text="\n".join(["+" * 40] * 30))))

    seen = draw(large, 118, 25).text

    assert "+" * 40 not in seen
    assert "Sente wins" in seen
    assert "+" * 40 in draw(large, 118, 60).text


@pytest.mark.parametrize(("width", "height"), [(138, 40), (118, 25), (78, 24), (60, 12)])
def test_an_old_board_has_its_age_beside_it_and_a_missing_one_its_reason(width: int, height: int) -> None:
    old = draw(replace(VIEW, game_age_seconds=14.2), width, height).text
    fault = draw(replace(VIEW, game=None, game_fault="nobody has written it \x1b[2J"), width, height).text

    assert "board of 14 s ago" in old
    assert "no board: nobody has written it ?[2J" in fault
    assert "ago" not in draw(replace(VIEW, game_age_seconds=4.9), width, height).text


def test_a_run_that_plays_no_game_has_no_moves_of_games() -> None:
    assert "moves a game" not in draw(replace(VIEW, game=None), 78, 24).text


def test_the_line_has_the_figures_and_no_board() -> None:
    line = plain_line(VIEW)

    assert "game/first_wins=0.48" in line
    assert "\n" not in line


def test_the_game_is_looked_at_when_a_frame_is_drawn_and_at_no_other_time() -> None:
    looks: list[int] = []

    def look() -> GameView:
        looks.append(1)
        return GAME

    console = Console(file=io.StringIO(), force_terminal=True, width=120, height=30)
    display = LiveDisplay(console, look_at_game=look)
    for step in range(1000):
        display.publish(replace(VIEW, step=step, game=None))
    assert looks == []

    display.start()
    display.stop()

    assert 1 <= len(looks) <= 3
    assert "[v歩]" in re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue())  # type: ignore[attr-defined]  # a StringIO
