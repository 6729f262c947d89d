"""What a few episodes say about a policy: mean, median and interquartile mean, with bootstrap intervals.

Axes: R resamples, N episodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Statistic: TypeAlias = Callable[[Array], Any]
"""From values along the last axis to one number for each row."""

RESAMPLES = 2_000
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic of the episodes that were played, and where it may well be for all that could have been."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4g} ({self.low:.4g} to {self.high:.4g})"


def mean(values: Array) -> Any:
    """Return the mean along the last axis."""
    return np.mean(values, axis=-1)


def median(values: Array) -> Any:
    """Return the median along the last axis."""
    return np.median(values, axis=-1)


def interquartile_mean(values: Array) -> Any:
    """Return the mean of the middle half along the last axis: a quarter of the values is cut off at either end."""
    cut = values.shape[-1] // 4
    return np.mean(np.sort(values, axis=-1)[..., cut : values.shape[-1] - cut], axis=-1)


STATISTICS: dict[str, Statistic] = {"mean": mean, "median": median, "iqm": interquartile_mean}


def estimates(
    returns: Sequence[float], *, seed: int, resamples: int = RESAMPLES, confidence: float = CONFIDENCE
) -> dict[str, Estimate]:
    """Return mean, median and interquartile mean of the returns, each with its percentile bootstrap interval.

    Args:
        returns: One number per episode, at least one.
        seed: The intervals are a function of the returns and of it.
        resamples: How often as many episodes are drawn, with replacement.
        confidence: The share of the resamples that lies within the interval.
    """
    values_N = np.asarray(returns, dtype=np.float64)
    if values_N.ndim != 1 or values_N.size == 0:
        raise ValueError(f"Statistics need at least one return in a plain list, got the shape {values_N.shape}.")
    if not 0 < confidence < 1 or resamples < 1:
        raise ValueError(f"An interval needs 0 < confidence < 1 and resamples >= 1, got {confidence} and {resamples}.")
    picks_RN = np.random.default_rng(seed).integers(0, values_N.size, (resamples, values_N.size))
    drawn_RN = values_N[picks_RN]
    tail = (1 - confidence) / 2
    found: dict[str, Estimate] = {}
    for name, statistic in STATISTICS.items():
        with np.errstate(invalid="ignore"):  # a return that is not finite makes a statistic that is not
            low, high = np.percentile(statistic(drawn_RN), [100 * tail, 100 * (1 - tail)])
            found[name] = Estimate(float(statistic(values_N)), float(low), float(high))
    return found
