"""The curriculum's arithmetic once more, as plainly as possible, to compare with."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from scipy import stats


def success_after(outcomes: list[bool], *, alpha: float, prior: float) -> float:
    """Return the exponential average as the weighted sum it stands for, in exact fractions."""
    weight, start = Fraction(alpha), Fraction(prior)
    kept = (1 - weight) ** len(outcomes) * start
    for age, outcome in enumerate(reversed(outcomes)):
        kept += weight * (1 - weight) ** age * int(outcome)
    return float(kept)


def weight(success: float, episodes: int) -> float:
    return 4 * success * (1 - success) * (1 + math.exp(-0.01 * episodes))


def floored(weights: list[float], floor: float) -> list[float]:
    """Return the probabilities with a floor, by searching for the factor that makes them add up to 1."""
    if sum(weights) == 0:
        return [1 / len(weights)] * len(weights)
    low, high = 0.0, 1e6 / sum(weights)
    for _ in range(200):
        factor = (low + high) / 2
        if sum(max(floor, factor * weight) for weight in weights) < 1:
            low = factor
        else:
            high = factor
    return [max(floor, high * weight) for weight in weights]


def plateaued(values: list[float], *, window: int, threshold: float) -> bool:
    """Return scipy's verdict."""
    if len(values) < window:
        return False
    recent = np.array(values[-window:])
    mean = recent.mean()
    if mean == 0:
        return False
    if np.ptp(recent) == 0:
        return True
    line = stats.linregress(np.arange(window), recent)
    return bool(abs(line.slope / mean) < threshold and recent.std() / abs(mean) < 0.1 and line.pvalue > 0.1)
