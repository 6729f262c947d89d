"""Value schedules: where they start, where they end, and what they refuse."""

from __future__ import annotations

import pytest

from hookloop.errors import ScheduleError
from hookloop.rl.values import Cosine, Exponential, Linear, Piecewise


@pytest.mark.parametrize(
    "schedule", [Linear(1.0, 0.1), Cosine(1.0, 0.1), Exponential(1.0, 0.1), Piecewise(((0, 1.0), (0.3, 0.7), (1, 0.1)))]
)
def test_a_value_starts_where_it_says_and_ends_there_exactly(schedule) -> None:
    assert schedule.at(0) == pytest.approx(1.0)
    assert schedule.at(1) == 0.1
    assert schedule.at(7) == 0.1
    assert schedule.at(-1) == pytest.approx(1.0)


def test_the_shapes_differ_in_between() -> None:
    assert Linear(1.0, 0.0).at(0.25) == pytest.approx(0.75)
    assert Cosine(1.0, 0.0).at(0.5) == pytest.approx(0.5)
    assert Exponential(1.0, 0.01).at(0.5) == pytest.approx(0.1)
    assert Piecewise(((0, 1.0), (0.5, 0.0), (1, 2.0))).at(0.75) == pytest.approx(1.0)


def test_an_exponential_cannot_reach_zero() -> None:
    with pytest.raises(ScheduleError, match="use Linear to reach 0"):
        Exponential(1.0, 0.0)


@pytest.mark.parametrize(
    "points", [((0, 1.0),), ((0, 1.0), (0.5, 2.0)), ((0.1, 1.0), (1, 2.0)), ((0, 1), (0, 2), (1, 3))]
)
def test_points_must_rise_from_zero_to_one(points) -> None:
    with pytest.raises(ScheduleError, match="rising progress from 0 to 1"):
        Piecewise(points)
