"""Ratings against published arithmetic."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookloop.selfplay.ratings import Score, elo_difference, expected_score, rating_from, updated, wilson_interval

ONE_WIN, ONE_DRAW, ONE_LOSS = Score(wins=1), Score(draws=1), Score(losses=1)


def test_a_tournament_is_rated_as_in_the_textbook_example() -> None:
    # A player of 1613 loses to 1609, draws with 1477, beats 1388 and 1586, loses to 1720: 2.5 points, 2.88 expected.
    opponents = {1609: ONE_LOSS, 1477: ONE_DRAW, 1388: ONE_WIN, 1586: ONE_WIN, 1720: ONE_LOSS}

    expected = [expected_score(1613, opponent) for opponent in opponents]
    change = sum(updated(1613, opponent, score) - 1613 for opponent, score in opponents.items())

    assert [round(points, 2) for points in expected] == [0.51, 0.69, 0.79, 0.54, 0.35]
    assert round(1613 + change) == 1601


@pytest.mark.parametrize(("difference", "mean"), [(0, 0.5), (100, 0.64), (200, 0.76), (400, 0.91), (-200, 0.24)])
def test_differences_of_ratings_are_the_tables_expected_scores(difference: int, mean: float) -> None:
    assert round(expected_score(1500 + difference, 1500), 2) == mean


@given(st.floats(-1500, 1500))
def test_a_difference_and_its_expected_score_are_inverse(difference: float) -> None:
    assert elo_difference(expected_score(difference, 0)) == pytest.approx(difference, abs=1e-3)


def test_wilsons_interval_is_the_published_one() -> None:
    low, high = wilson_interval(0.5, 100)
    assert (round(low, 4), round(high, 4)) == (0.4038, 0.5962)
    low, high = wilson_interval(1.0, 10)
    assert (round(low, 4), high) == (0.7225, 1.0)


def test_a_match_that_was_won_throughout_has_a_rating_from_below() -> None:
    rating = rating_from(Score(wins=50), opponent=1000.0)

    assert rating.elo == rating.high == math.inf
    assert 1400 < rating.low < 1450


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50))
def test_the_interval_holds_the_rating_and_narrows_with_games(wins: int, draws: int, losses: int) -> None:
    once = rating_from(Score(wins, draws, losses))
    often = rating_from(Score(9 * wins, 9 * draws, 9 * losses))

    assert once.low <= once.elo <= once.high
    assert once.low <= often.low + 1e-9
    assert often.high <= once.high + 1e-9
