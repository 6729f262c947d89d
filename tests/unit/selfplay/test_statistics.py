"""Statistics of games: equal to plain counting, bounded in what they look at, and the same after a resume."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspiel", reason="OpenSpiel, the extra 'games', is not installed")

from hookloop.boards import Board, material, worth
from hookloop.selfplay.game_figures import figures_of
from hookloop.selfplay.games import EndedGame
from hookloop.selfplay.library import State, load_game
from hookloop.selfplay.recent import RecentOutcomes
from hookloop.selfplay.statistics import GameFigures, GameStatistics
from hookloop.selfplay.tally import OUTCOMES, Tally
from hookloop.selfplay.watching import GameRecord


def random_game(name: str, seed: int, most_moves: int = 120) -> State:
    state, draw = load_game(name).new_initial_state(), random.Random(seed)
    while not state.is_terminal() and len(state.history()) < most_moves:
        state.apply_action(draw.choice(state.legal_actions()))
    return state


def figures(name: str, state: State, *, drawn: int = 0) -> GameFigures:
    return figures_of(load_game(name), EndedGame(state, "draw", len(state.history()) - drawn))


def texts(name: str, state: State) -> list[tuple[int, str]]:
    """Return the moves of a game by the library alone: whose, and in its notation."""
    replayed, found = load_game(name).new_initial_state(), list[tuple[int, str]]()
    for action in state.history():
        seat = replayed.current_player()
        found.append((seat, replayed.action_to_string(seat, action)))
        replayed.apply_action(action)
    return found


def by_seat(moves: list[tuple[int, str]], letters: str) -> list[int]:
    return [sum(who == seat and any(each in text for each in letters) for who, text in moves) for seat in (0, 1)]


def pieces(board: Board) -> Counter[str]:
    """Count all pieces by what they are when they are not promoted, whoever has them, and wherever they are."""
    standing = [square.letters for row in board.rows for square in row if square.seat is not None]
    held = [square.letters for hand in board.hands for square, count in hand.pieces for _ in range(count)]
    return Counter(letters.strip().lstrip("+").upper() for letters in standing + held)


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_no_piece_of_shogi_is_ever_lost_and_material_changes_as_the_moves_say(seed: int) -> None:
    record, draw = GameRecord(load_game("shogi")), random.Random(seed)
    all_pieces, before = pieces(record.position), material("shogi", record.position)
    while not record.state.is_terminal() and len(record.history) < 150:
        record.play(draw.choice(record.state.legal_actions()))
        facts, seat, after = record.facts, record.moves[-1].seat, material("shogi", record.position)
        assert facts is not None
        assert before is not None
        assert after is not None

        assert pieces(record.position) == all_pieces
        lost = sum(worth("shogi", piece) for piece in facts.captured or ())
        taken = sum(worth("shogi", piece.lstrip("+")) for piece in facts.captured or ())
        gained = after.total[seat] - before.total[seat] - taken
        assert after.total[1 - seat] == before.total[1 - seat] - lost
        assert gained > 0 if facts.is_promotion else gained == 0
        assert before.in_hand is not None
        assert after.in_hand is not None
        assert (after.in_hand[seat] < before.in_hand[seat]) == facts.is_drop
        before = after


@pytest.mark.parametrize("seed", range(3))
def test_figures_of_chess_are_what_its_notation_says(seed: int) -> None:
    state = random_game("chess", seed, 200)
    moves = texts("chess", state)

    found = figures("chess", state)

    assert found.counts == {
        "captures": by_seat(moves, "x"), "promotions": by_seat(moves, "="), "checks": by_seat(moves, "+#"),
    }  # fmt: skip
    assert sum(found.counts["captures"]) > 0
    quiet = "".join("x" if "x" in text else "." for _, text in moves).split("x")
    assert found.longest_quiet == max(map(len, quiet))
    assert found.opening == [text for _, text in moves[:3]]
    assert sum(found.arrivals.values()) == found.moves == len(moves)


@pytest.mark.parametrize("seed", range(3))
def test_figures_of_shogi_agree_with_what_is_in_hand_at_the_end(seed: int) -> None:
    state = random_game("shogi", seed, 200)
    moves = texts("shogi", state)
    record = GameRecord(load_game("shogi"))
    record.follow(state.history())

    found = figures("shogi", state)

    assert found.counts["drops"] == by_seat(moves, "*")
    assert found.counts["promotions"] == by_seat(moves, "+")
    for hand in record.position.hands:
        held = sum(count for _, count in hand.pieces)
        assert found.counts["captures"][hand.seat] == held + found.counts["drops"][hand.seat]
    assert found.arrivals == Counter(text.removesuffix("+")[-2:] for _, text in moves)
    total = material("shogi", record.position)
    assert total is not None
    assert found.lead == total.total[0] - total.total[1]
    assert found.king_moves is not None
    assert all(positions > 0 for _, positions in found.king_moves)


def test_checks_of_shogi_are_those_the_library_sees() -> None:
    state = random_game("shogi", 1, 400)
    replayed, checks = load_game("shogi").new_initial_state(), [0, 0]
    for action in state.history():
        seat = replayed.current_player()
        replayed.apply_action(action)
        checks[seat] += replayed.in_check()

    assert sum(checks) > 0
    assert figures("shogi", state).counts["checks"] == checks


def test_stones_of_othello_are_turned_and_never_captured() -> None:
    state = random_game("othello", 3)
    moves = texts("othello", state)

    found = figures("othello", state)

    assert set(found.counts) == {"turned"}
    placed = [sum(who == seat and text != "pass" for who, text in moves) for seat in (0, 1)]
    turned = found.counts["turned"]
    assert min(turned) > 0
    assert found.lead == placed[0] - placed[1] + 2 * (turned[0] - turned[1])
    assert (found.best_capture, found.longest_quiet, found.king_moves) == (None, None, None)


def test_a_game_without_captures_has_no_figures_of_them() -> None:
    found = figures("connect_four", random_game("connect_four", 0))

    assert found.counts == {}
    assert (found.lead, found.best_capture, found.longest_quiet, found.king_moves) == (None, None, None, None)


def test_moves_that_were_drawn_to_open_a_game_belong_to_nobody() -> None:
    state = random_game("connect_four", 2)

    found = figures("connect_four", state, drawn=4)

    assert found.opening is None
    assert found.arrivals == Counter(text[1:] for _, text in texts("connect_four", state)[4:])


def game(number: int, **more: object) -> GameFigures:
    return GameFigures(
        moves=10, counts={"captures": [number, 2 * number]}, arrivals={"a1": number, "b2": 1},
        opening=["e4", "e5" if number % 3 else "c5"], lead=float(number), **more,  # type: ignore[arg-type]
    )  # fmt: skip


def test_a_summary_is_of_the_latest_games() -> None:
    statistics = GameStatistics(window=4)
    for number in range(10):
        statistics.add(game(number))

    found = statistics.summary()

    assert found.figures == {
        "looked_at": 10.0, "first_captures": 7.5, "second_captures": 15.0, "lead": 7.5, "opening_share": 0.5,
    }  # fmt: skip
    assert found.hot_squares == (("a1", 30), ("b2", 4))
    assert found.opening in (("e4", "e5"), ("e4", "c5"))
    assert GameStatistics().summary().figures == {}


def test_statistics_go_on_as_if_they_had_not_been_saved() -> None:
    whole, first = GameStatistics(window=4), GameStatistics(window=4)
    for number in range(6):
        whole.add(game(number))
        first.add(game(number))
    resumed = GameStatistics(window=4)
    resumed.load_state_dict(json.loads(json.dumps(first.state_dict(), allow_nan=False)))
    for number in range(6, 9):
        whole.add(game(number, best_capture=3.0, king_moves=[[4, 2], [0, 0]]))
        resumed.add(game(number, best_capture=3.0, king_moves=[[4, 2], [0, 0]]))

    assert resumed.summary() == whole.summary()
    assert whole.summary().figures["first_king_moves"] == 2.0
    assert "second_king_moves" not in whole.summary().figures
    assert resumed.state_dict() == whole.state_dict()


def test_no_more_than_a_part_of_the_moves_is_looked_at() -> None:
    statistics, looked = GameStatistics(most_share=0.1), 0
    for played in range(20, 2020, 20):
        if statistics.has_room(played):
            statistics.add(game(1))
            looked += 10

    assert 190 <= looked <= 0.1 * 2000 + 10


@given(st.lists(st.lists(st.sampled_from(OUTCOMES), max_size=12), max_size=40), st.integers(1, 20))
def test_a_window_of_outcomes_is_a_difference_of_counts(epochs: list[list[str]], window: int) -> None:
    tally, recent, counts = Tally(), RecentOutcomes(window), list[Counter[str]]()
    recent.begin(tally)
    for ended in epochs:
        for outcome in ended:
            tally.add(outcome)  # type: ignore[arg-type]
        recent.note(tally)
        counts.append(Counter(ended))

    latest: Counter[str] = Counter()
    while counts and latest.total() < window:
        latest.update(counts.pop())

    found = recent.counts()
    assert found.games == latest.total()
    assert (found.first_wins, found.draws) == (latest["first_win"], latest["draw"])
    assert len(recent.state_dict()["earlier"]) <= window + 1


def test_a_window_survives_a_resume_and_begins_where_it_is_not_saved() -> None:
    tally, recent = Tally(first_wins=5), RecentOutcomes(3)
    recent.begin(tally)
    tally.add("draw")
    recent.note(tally)
    resumed = RecentOutcomes(3)
    resumed.load_state_dict(json.loads(json.dumps(recent.state_dict())))
    resumed.begin(tally)

    assert recent.counts() == resumed.counts() == Tally(draws=1)
    assert RecentOutcomes().counts() == Tally()
