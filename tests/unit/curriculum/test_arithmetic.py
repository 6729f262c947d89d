"""The arithmetic of lessons, compared with a plain reference."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import special, stats

from hookloop.curriculum import (
    EvaluationStats,
    LessonStats,
    allot,
    has_plateaued,
    learning_weight,
    slope_p_value,
    with_floor,
)
from hookloop.curriculum.plateau import regularised_beta
from tests.unit.curriculum import reference

shares = st.floats(0.0, 1.0, allow_subnormal=False)


@st.composite
def probabilities(draw: st.DrawFn) -> dict[str, float]:
    parts = draw(st.lists(st.floats(0.001, 1.0), min_size=1, max_size=8))
    return with_floor({f"lesson {number}": part for number, part in enumerate(parts)}, 0.0)


@given(st.lists(st.booleans(), max_size=60), st.floats(0.01, 1.0), shares)
def test_success_is_the_exponential_average(outcomes: list[bool], alpha: float, prior: float) -> None:
    found = LessonStats(alpha=alpha, prior=prior, window=5, point_episodes=4)

    for outcome in outcomes:
        found.observe(succeeded=outcome, return_=0.0)

    assert found.success == pytest.approx(reference.success_after(outcomes, alpha=alpha, prior=prior), abs=1e-12)
    assert 0.0 <= found.success <= 1.0


@given(st.lists(st.booleans(), max_size=60), st.integers(1, 7), st.integers(3, 6))
def test_the_course_is_made_of_means_over_equally_many_episodes(
    outcomes: list[bool], point_episodes: int, window: int
) -> None:
    found = LessonStats(alpha=0.1, prior=0.5, window=window, point_episodes=point_episodes)

    for outcome in outcomes:
        found.observe(succeeded=outcome, return_=0.0)

    whole = len(outcomes) // point_episodes
    points = np.reshape(outcomes[: whole * point_episodes], (whole, point_episodes)).mean(axis=1).tolist()
    assert list(found.history) == pytest.approx(points[-window:])


@given(shares, st.integers(0, 100_000))
def test_the_weight_is_largest_half_way_and_for_what_is_new(success: float, episodes: int) -> None:
    weight = learning_weight(success, episodes)

    assert weight == pytest.approx(reference.weight(success, episodes))
    assert 0.0 <= weight <= learning_weight(0.5, episodes)
    assert weight <= learning_weight(success, max(episodes - 1, 0))


@given(st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 2.0)), min_size=1, max_size=8), st.floats(0.0, 0.12))
def test_probabilities_add_up_to_one_and_none_is_below_the_floor(weights: list[float], floor: float) -> None:
    found = list(with_floor({str(number): weight for number, weight in enumerate(weights)}, floor).values())

    assert sum(found) == pytest.approx(1.0)
    assert min(found) >= floor * (1 - 1e-9)
    assert found == pytest.approx(reference.floored(weights, floor), abs=1e-6)


def test_a_floor_that_takes_everything_leaves_all_lessons_alike() -> None:
    assert with_floor({"easy": 5.0, "hard": 1.0}, 0.5) == {"easy": 0.5, "hard": 0.5}


@given(st.lists(st.floats(0.0, 1.0), min_size=3, max_size=60))
def test_the_slope_and_its_p_value_are_those_of_scipy(values: list[float]) -> None:
    slope, p_value = slope_p_value(values)

    if np.std(values) < 1e-9:
        assert slope == pytest.approx(0.0, abs=1e-9)
        return
    line = stats.linregress(np.arange(len(values)), values)
    assert slope == pytest.approx(line.slope, abs=1e-9)
    assert p_value == pytest.approx(line.pvalue, abs=1e-6)


@given(st.floats(0.5, 500.0), st.floats(0.0, 1.0))
def test_the_incomplete_beta_function_is_that_of_scipy(a: float, x: float) -> None:
    assert regularised_beta(a, 0.5, x) == pytest.approx(special.betainc(a, 0.5, x), rel=1e-9, abs=1e-13)


@given(
    st.floats(0.05, 1.0),
    st.floats(-0.01, 0.01),
    st.lists(st.floats(-0.1, 0.1), min_size=2, max_size=40),
    st.integers(3, 20),
)
def test_a_plateau_is_what_scipy_calls_one(level: float, trend: float, noise: list[float], window: int) -> None:
    values = [level + trend * place + each for place, each in enumerate(noise)]

    found = has_plateaued(values, window=window, threshold=0.01)

    assert found == reference.plateaued(values, window=window, threshold=0.01)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.9] * 10, True),
        ([0.9, 0.91] * 5, True),
        ([0.9] * 9, False),
        ([0.1 * step for step in range(1, 11)], False),
        ([0.5, 0.9] * 5, False),
        ([0.0] * 10, False),
    ],
    ids=["constant", "nearly constant", "too short", "rising", "volatile", "never any success"],
)
def test_what_is_a_plateau(values: list[float], expected: bool) -> None:
    assert has_plateaued(values, window=10) is expected


@given(probabilities(), st.integers(1, 32), st.floats(0.0, 1.0, exclude_max=True))
@example({"lesson 0": 1 / 3, "lesson 1": 8 / 21, "lesson 2": 2 / 7}, 2, 0.9999999999999998)
def test_each_lesson_gets_its_share_of_places_rounded_up_or_down(
    chosen: dict[str, float], places: int, offset: float
) -> None:
    counts = Counter(allot(chosen, [""] * places, offset))

    assert sum(counts.values()) == places
    for lesson, probability in chosen.items():
        assert abs(counts[lesson] - probability * places) < 1 + 1e-6


@given(probabilities(), st.integers(1, 16))
def test_on_average_each_lesson_gets_exactly_its_share(chosen: dict[str, float], places: int) -> None:
    offsets = [(number + 0.5) / 400 for number in range(400)]

    counts = Counter(lesson for offset in offsets for lesson in allot(chosen, [""] * places, offset))

    for lesson, probability in chosen.items():
        assert counts[lesson] / 400 == pytest.approx(probability * places, abs=0.01)


@given(probabilities(), st.lists(st.integers(0, 7), min_size=1, max_size=16), st.floats(0.0, 1.0, exclude_max=True))
def test_as_few_places_change_as_possible(chosen: dict[str, float], before: list[int], offset: float) -> None:
    present = [f"lesson {number}" for number in before]

    after = allot(chosen, present, offset)

    surplus = Counter(present) - Counter(after)
    assert sum(one != other for one, other in zip(present, after, strict=True)) == surplus.total()


def test_more_successes_than_episodes_are_refused() -> None:
    with pytest.raises(ValueError, match="Of 4 episodes 5 succeeded"):
        EvaluationStats(successes=5, episodes=4)
