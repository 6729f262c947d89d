"""Every game is counted once, under how it ended."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookloop.selfplay.tally import OUTCOMES, Tally, as_numbers, outcome_of


@pytest.mark.parametrize(
    ("first_return", "is_cut_off", "outcome"),
    [(1.0, False, "first_win"), (-1.0, False, "second_win"), (0.0, False, "draw"), (0.0, True, "cut_off")],
)
def test_an_outcome_is_told_by_the_first_seats_return(first_return: float, is_cut_off: bool, outcome: str) -> None:
    assert outcome_of(first_return, is_cut_off=is_cut_off) == outcome


@given(st.lists(st.sampled_from(OUTCOMES)))
def test_all_games_are_counted_once_and_rates_add_up_to_one(outcomes) -> None:
    tally = Tally()
    for outcome in outcomes:
        tally.add(outcome)

    assert tally.games == len(outcomes)
    assert tally.draws == outcomes.count("draw")
    assert sum(tally.rates().values()) == pytest.approx(1.0 if outcomes else 0.0)
    restored = Tally()
    restored.load_state_dict(tally.state_dict())
    assert restored == tally


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_an_outcome_as_numbers_is_one_one_among_zeros(outcome) -> None:
    assert {name: value for name, value in as_numbers(outcome).items() if value} == {outcome: 1.0}
