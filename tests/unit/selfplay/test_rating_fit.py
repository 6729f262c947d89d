"""Ratings from many matches: the arithmetic of two players, and what it must be for more."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookloop.errors import ConfigError
from hookloop.selfplay.rating_fit import fit_ratings
from hookloop.selfplay.ratings import CONFIDENT, Score, elo_difference, expected_score


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_two_players_differ_by_what_the_score_says(wins: int, draws: int, losses: int) -> None:
    score = Score(wins, draws, losses)
    if not score.games:
        return
    rating = fit_ratings({("a", "b"): score}, anchor="b")["a"]

    mean = (wins + draws / 2 + 0.5) / (score.games + 1)
    assert rating.elo == pytest.approx(elo_difference(mean), abs=1e-4)
    # The deviation of a share is sqrt(p (1 - p) / n), and the slope of the logarithm of its odds 1 / (p (1 - p)).
    deviation = 400 / math.log(10) / math.sqrt((score.games + 1) * mean * (1 - mean))
    assert rating.high - rating.elo == pytest.approx(CONFIDENT * deviation, rel=1e-6)
    assert rating.deviation == pytest.approx(deviation, rel=1e-6)


@given(st.lists(st.floats(-600, 600), min_size=2, max_size=5))
def test_many_games_give_the_ratings_they_were_played_with(true: list[float]) -> None:
    games = 2_000_000
    results = {
        (f"p{i}", f"p{j}"): Score(wins := round(games * expected_score(one, other)), 0, games - wins)
        for i, one in enumerate(true)
        for j, other in enumerate(true)
        if i < j
    }
    found = fit_ratings(results, anchor="p0")

    for k, rating in enumerate(true):
        assert found[f"p{k}"].elo == pytest.approx(rating - true[0], abs=2.0)


def test_a_chain_of_matches_joins_players_who_never_met() -> None:
    found = fit_ratings({("a", "anchor"): Score(75, 0, 25), ("b", "a"): Score(75, 0, 25)}, anchor="anchor")

    assert found["anchor"].elo == found["anchor"].deviation == 0
    assert found["b"].elo == pytest.approx(2 * found["a"].elo)
    assert found["b"].deviation == pytest.approx(math.sqrt(2) * found["a"].deviation), "what is not known adds up"


def test_nobody_is_rated_infinitely_high() -> None:
    rating = fit_ratings({("a", "b"): Score(wins=100)}, anchor="b")["a"]

    assert 700 < rating.elo < 1000
    assert rating.low > 300


def test_nobody_has_a_rating_by_themselves() -> None:
    with pytest.raises(ConfigError, match="c, d cannot be rated"):
        fit_ratings({("a", "b"): Score(1), ("c", "d"): Score(1)}, anchor="a")


def test_without_matches_there_is_the_anchor_alone() -> None:
    assert {name: rating.elo for name, rating in fit_ratings({}, anchor="a").items()} == {"a": 0.0}
