from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from hookloop.evaluation import estimates
from hookloop.evaluation.statistics import interquartile_mean

returns = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40)


@given(returns)
def test_the_interquartile_mean_is_scipys_mean_without_a_quarter_at_either_end(values: list[float]) -> None:
    ours = interquartile_mean(np.array(values))

    assert ours == pytest.approx(scipy.stats.trim_mean(values, 0.25), rel=1e-12, abs=1e-9)


@pytest.mark.parametrize(("name", "statistic"), [
    ("mean", np.mean), ("median", np.median),
    ("iqm", lambda values, axis: scipy.stats.trim_mean(values, 0.25, axis=axis)),
])  # fmt: skip
def test_the_intervals_are_scipys_percentile_bootstrap_of_the_same_draws(name: str, statistic: object) -> None:
    values = np.random.default_rng(5).normal(10.0, 3.0, 30)

    ours = estimates(values.tolist(), seed=7, resamples=1000)[name]

    theirs = scipy.stats.bootstrap(
        (values,), statistic, n_resamples=1000, method="percentile", rng=np.random.default_rng(7)
    ).confidence_interval
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=1e-12)


def test_the_interval_of_a_mean_covers_the_truth_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(0)
    found = [estimates(generator.normal(0.0, 1.0, 40).tolist(), seed=k, resamples=500)["mean"] for k in range(300)]

    share = np.mean([each.low <= 0.0 <= each.high for each in found])
    assert 0.90 <= share <= 0.98


@given(returns, st.integers(0, 100))
def test_an_interval_is_a_function_of_returns_and_seed_and_lies_among_the_returns(
    values: list[float], seed: int
) -> None:
    found = estimates(values, seed=seed, resamples=50)

    assert found == estimates(values, seed=seed, resamples=50)
    for each in found.values():
        assert min(values) - 1e-6 <= each.low <= each.high <= max(values) + 1e-6


def test_one_episode_has_an_interval_of_no_width() -> None:
    assert str(estimates([3.0], seed=0)["iqm"]) == "3 (3 to 3)"


def test_nothing_has_no_statistics() -> None:
    with pytest.raises(ValueError, match="at least one return"):
        estimates([], seed=0)
