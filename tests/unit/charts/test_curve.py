from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookloop.charts import Curve, Panel, smoothed, thinned

NUMBERS = st.floats(-1e6, 1e6)
VALUES = st.lists(NUMBERS | st.sampled_from([math.nan, math.inf, -math.inf]), min_size=1, max_size=300)


def curve(values: list[float]) -> Curve:
    return Curve("loss", [float(k) for k in range(len(values))], values)


@given(VALUES, st.integers(1, 20))
def test_a_thinned_curve_has_the_peaks_and_the_ends_of_the_whole_one(values: list[float], buckets: int) -> None:
    whole = curve(values)

    thin = thinned(whole, buckets)

    finite, kept = ([value for value in each.y if math.isfinite(value)] for each in (whole, thin))
    assert (thin.x[0], thin.x[-1]) == (whole.x[0], whole.x[-1])
    assert not finite or (min(kept), max(kept)) == (min(finite), max(finite))
    assert bool(thin.gaps) == bool(whole.gaps)


@given(VALUES, st.integers(1, 20))
def test_a_thinned_curve_is_small_and_holds_measured_points_in_order_alone(values: list[float], buckets: int) -> None:
    whole = curve(values)

    thin = thinned(whole, buckets)

    assert len(thin) <= 5 * buckets
    assert list(thin.x) == sorted(set(thin.x))
    assert all(repr(value) == repr(values[int(x)]) for x, value in zip(thin.x, thin.y, strict=True))


def test_a_single_peak_in_a_million_points_survives() -> None:
    values = [0.0] * 1_000_000
    values[765_432] = 7.0

    thin = thinned(curve(values))

    assert len(thin) < 4000
    assert thin.x[list(thin.y).index(7.0)] == 765_432


def test_points_at_one_place_are_thinned_too() -> None:
    assert len(thinned(Curve("loss", [3.0] * 100, [float(k) for k in range(100)]), 2)) == 2


@given(VALUES, st.integers(1, 50))
def test_smoothing_stays_between_the_lowest_and_the_highest_and_keeps_gaps(values: list[float], points: int) -> None:
    smooth = smoothed(curve(values), points)

    finite = [value for value in values if math.isfinite(value)]
    assert [math.isfinite(value) for value in smooth.y] == [math.isfinite(value) for value in values]
    for value in smooth.y:
        if math.isfinite(value):
            assert min(finite) - 1e-3 <= value <= max(finite) + 1e-3


def test_smoothing_is_the_mean_of_a_point_and_its_neighbours() -> None:
    assert smoothed(curve([0.0, 3.0, 6.0, 0.0]), 3).y == pytest.approx([1.5, 3.0, 3.0, 3.0])
    assert smoothed(curve([0.0, math.nan, 6.0]), 3).y[::2] == [0.0, 6.0]
    assert smoothed(curve([1.0, 2.0]), 1).y == [1.0, 2.0]


def test_a_huge_value_spoils_the_means_around_it_alone() -> None:
    assert smoothed(curve([1e308, 1e308, 1.0, 2.0, 3.0]), 3).y[3:] == [2.0, 2.5]


def test_what_is_not_finite_is_marked_at_the_height_before_it() -> None:
    marked = curve([math.nan, 2.0, math.inf, 3.0]).gaps

    assert [(x, str(value), height) for x, value, height in marked] == [(0.0, "nan", 2.0), (2.0, "inf", 2.0)]


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ValueError, match="needs an x for every y, got 1 and 2"):
        Curve("loss", [0.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="at least 1 bucket, got 0"):
        thinned(curve([1.0]), 0)
    with pytest.raises(ValueError, match="at least 1 point, got 0"):
        Panel("loss", [], smooth_points=0)


def test_values_that_differ_by_rounding_alone_are_shown_as_a_flat_line() -> None:
    flat, steep = ([Panel("time", [curve(values)]).flat_range for values in found] for found in (
        ([0.1, 0.1 + 1e-16], [0.0, 0.0], [-2.0]), ([0.1, 0.1001], [math.nan], [1.0, 2.0]),
    ))  # fmt: skip

    assert flat == [pytest.approx((0.09, 0.11)), (-1.0, 1.0), pytest.approx((-2.2, -1.8))]
    assert steep == [None, None, None]


def test_metrics_of_a_panel_are_called_by_what_tells_them_apart() -> None:
    def labels(*names: str) -> list[str]:
        return list(Panel("some", [Curve(name, [1.0], [1.0]) for name in names]).labels.values())

    assert labels("game/recent/draws", "game/recent/first_wins") == ["draws", "first_wins"]
    assert labels("eval/rating", "eval/rating_low") == ["rating", "rating_low"]
    assert labels("return/mean", "evaluation match/greedy") == ["return/mean", "evaluation match/greedy"]
    assert labels("loss/a/x", "loss/b/x") == ["a/x", "b/x"]
    assert labels("losses/ppo/policy") == ["losses/ppo/policy"]
    assert labels("loss", "loss/value") == ["loss", "loss/value"]
    assert labels("a" * 100)[0].startswith("a" * 27)


def test_metrics_of_one_run_are_told_apart_by_colour_and_those_of_several_by_dash() -> None:
    def looks(*runs: str) -> list[tuple[str, str]]:
        panel = Panel("some", [Curve(name, [1.0], [1.0], run) for run in runs for name in ("a", "b")])
        return [panel.look_of(curve, runs) for curve in panel.curves]

    assert [dash for _, dash in looks("one")] == ["solid", "solid"]
    assert len({colour for colour, _ in looks("one")}) == 2
    assert [dash for _, dash in looks("one", "two")] == ["solid", "dash", "solid", "dash"]
    assert len({colour for colour, _ in looks("one", "two")}) == 2
