"""Running statistics agree with numpy over all the data at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookloop.rl.envs import EnvStateError, RunningStatistics

BATCH_SIZES = st.lists(st.integers(0, 7), min_size=1, max_size=12)


def batches_of(sizes: list[int], seed: int, offset: float, scale: float) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    return [(offset + scale * generator.standard_normal((size, 3))).astype(np.float32) for size in sizes]


@settings(max_examples=60, deadline=None)
@given(sizes=BATCH_SIZES, seed=st.integers(0, 999), offset=st.sampled_from([0.0, 5.0, 1e4]), scale=st.floats(0.1, 9.0))
def test_batches_give_the_mean_and_variance_of_all_rows(
    sizes: list[int], seed: int, offset: float, scale: float
) -> None:
    batches = batches_of(sizes, seed, offset, scale)
    rows = np.concatenate(batches).astype(np.float64)
    statistics = RunningStatistics((3,))

    for batch in batches:
        statistics.update(batch)

    assert statistics.count == len(rows)
    if len(rows):
        np.testing.assert_allclose(statistics.mean, rows.mean(axis=0), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(statistics.variance, rows.var(axis=0), rtol=1e-9, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(sizes=BATCH_SIZES, seed=st.integers(0, 999), cut=st.integers(0, 12))
def test_merged_statistics_are_those_of_both(sizes: list[int], seed: int, cut: int) -> None:
    batches = batches_of(sizes, seed, 3.0, 2.0)
    whole, first, second = (RunningStatistics((3,)) for _ in range(3))
    for index, batch in enumerate(batches):
        whole.update(batch)
        (first if index < cut else second).update(batch)

    first.merge(second)

    assert first.count == whole.count
    np.testing.assert_allclose(first.mean, whole.mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(first.variance, whole.variance, rtol=1e-9, atol=1e-12)


def test_a_large_offset_does_not_swallow_the_variance() -> None:
    rows = 1e8 + np.array([[-1.0], [0.0], [1.0]])
    statistics = RunningStatistics((1,))

    for row in rows:
        statistics.update(row[np.newaxis])

    assert statistics.variance[0] == pytest.approx(2 / 3, rel=1e-6)


def test_data_that_has_not_varied_has_the_scale_one() -> None:
    statistics = RunningStatistics((2,))
    assert statistics.scale().tolist() == [1.0, 1.0]

    statistics.update(np.array([[5.0, 0.0], [5.0, 2.0]]))

    assert statistics.scale().tolist() == [1.0, 1.0]
    assert statistics.variance.tolist() == [0.0, 1.0]


def test_statistics_can_be_saved() -> None:
    statistics, loaded = RunningStatistics((3,)), RunningStatistics((3,))
    statistics.update(batches_of([5], 0, 1.0, 1.0)[0])

    loaded.load_state_dict(statistics.state_dict())

    assert loaded.count == 5
    assert np.array_equal(loaded.mean, statistics.mean)
    assert np.array_equal(loaded.variance, statistics.variance)


def test_statistics_of_another_shape_are_refused() -> None:
    with pytest.raises(EnvStateError, match=r"of shape \(3,\), these of shape \(2,\)"):
        RunningStatistics((2,)).load_state_dict(RunningStatistics((3,)).state_dict())
