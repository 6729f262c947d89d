"""Curves in bounded memory, and how fast a run goes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookloop.display import History, Pace, sparkline

FINITE = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False)  # halves of those have few digits


def test_a_sparkline_goes_from_its_lowest_to_its_highest() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert sparkline([5, 5, 5]) == "▁▁▁"
    assert sparkline([]) == ""
    assert sparkline([float("nan"), 1.0, 2.0]) == "▁█"


@given(values=st.lists(st.floats(), max_size=200), letters=st.integers(0, 40))
def test_a_sparkline_has_at_most_so_many_letters_whatever_the_values(values: list[float], letters: int) -> None:
    assert len(sparkline(values, letters)) <= letters


@given(values=st.lists(FINITE, min_size=1, max_size=500), most_points=st.sampled_from([2, 8, 64]))
def test_a_history_is_bounded_and_stays_between_its_lowest_and_highest(values: list[float], most_points: int) -> None:
    history = History(most_points)
    for value in values:
        history.add(value)

    points = history.points()
    assert 1 <= len(points) <= most_points
    assert history.latest == values[-1]
    room = 1e-9 * max(map(abs, values)) + 1e-300
    assert all(min(values) - room <= point <= max(values) + room for point in points)


def test_a_history_keeps_the_course_of_the_whole_run() -> None:
    history = History(8)
    for value in range(1000):
        history.add(value)

    points = history.points()
    assert list(points) == sorted(points)
    assert points[0] < 130
    assert points[-1] > 870


def test_a_value_that_is_not_finite_is_the_latest_and_no_point() -> None:
    history = History()
    history.add(1.0)
    history.add(math.nan)

    assert math.isnan(history.latest)
    assert history.points() == (1.0,)


def test_the_pace_is_that_of_the_latest_seconds() -> None:
    pace = Pace()
    assert pace.speed() is None
    for second in range(100):
        pace.add(second, second * 10 if second < 50 else 500 + (second - 50) * 1000)

    assert pace.speed() == pytest.approx(1000)
    assert pace.eta_seconds(500 + 49_000 + 10_000) == pytest.approx(10_000 / pace.speed(60.0))  # type: ignore[operator]


def test_the_time_left_is_unknown_without_a_goal_or_a_speed() -> None:
    pace = Pace()
    pace.add(0, 0)
    assert pace.eta_seconds(100) is None
    pace.add(1, 10)
    assert pace.eta_seconds(None) is None
    assert pace.eta_seconds(100) == pytest.approx(9.0)
    assert pace.eta_seconds(5) == 0.0


def test_a_step_back_begins_anew() -> None:
    pace = Pace()
    pace.add(0, 0)
    pace.add(1, 100)
    pace.add(2, 50)

    assert pace.speed() is None


@given(times=st.lists(st.floats(0, 0.2), min_size=1, max_size=2000))
def test_a_pace_remembers_a_minute_however_often_it_is_told(times: list[float]) -> None:
    pace, seconds = Pace(), 0.0
    pace.add(0.0, 0)
    for each in times:
        seconds += each
        pace.add(seconds, int(seconds * 1000))

    speed = pace.speed()
    assert speed is None or seconds < 0.1 or abs(speed - 1000) < 50
