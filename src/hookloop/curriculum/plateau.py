"""Whether a course of numbers has gone flat: by its slope, its spread, and the chance that the slope is none."""

from __future__ import annotations

import math
from collections.abc import Sequence

LARGEST_VARIATION = 0.1
SMALLEST_P_VALUE = 0.1


def has_plateaued(values: Sequence[float], *, window: int, threshold: float = 0.01) -> bool:
    """Tell whether the last ``window`` values show no trend and little spread.

    All three must hold: the slope of the regression line is, relative to the mean, below ``threshold`` per value;
    the coefficient of variation is below 0.1; and a slope as large as this one comes about by chance with a
    probability above 0.1. Fewer values than ``window`` are no plateau, nor are values around 0.
    """
    if len(values) < window:
        return False
    recent = list(values)[-window:]
    mean = math.fsum(recent) / window
    if mean == 0.0:
        return False
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in recent) / window)
    slope, p_value = slope_p_value(recent)
    return abs(slope / mean) < threshold and spread / abs(mean) < LARGEST_VARIATION and p_value > SMALLEST_P_VALUE


def slope_p_value(values: Sequence[float]) -> tuple[float, float]:
    """Return the slope of the regression line over 0, 1, 2 ..., and the two-sided p-value of there being none.

    Values that do not differ have the slope 0 with p-value 1; values exactly on another line have p-value 0.
    """
    count = len(values)
    if count < 3:
        raise ValueError(f"A slope needs at least three values to be tested, got {count}.")
    mean = math.fsum(values) / count
    middle = (count - 1) / 2
    across = (count**3 - count) / 12  # the sum of squares of 0, 1, 2 ... around their mean
    slope = math.fsum((place - middle) * (value - mean) for place, value in enumerate(values)) / across
    total = math.fsum((value - mean) ** 2 for value in values)
    explained = slope * slope * across
    # What rounding leaves of a constant is no variation.
    if total <= count * (8 * math.ulp(abs(mean))) ** 2:
        return 0.0, 1.0
    left = max(total - explained, 0.0)
    degrees = count - 2
    # P(|T| > t) is the regularised incomplete beta at degrees / (degrees + t^2), which is left / total.
    return slope, regularised_beta(degrees / 2, 0.5, min(left / total, 1.0))


def regularised_beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b), by its continued fraction."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    # The fraction converges fast on this side of the mean only; the other side is its mirror image.
    if x > (a + 1) / (a + b + 2):
        return 1.0 - regularised_beta(b, a, 1.0 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    return front / _fraction(a, b, x)


def _fraction(a: float, b: float, x: float) -> float:
    """Evaluate 1 + d1 / (1 + d2 / (1 + ...)) from the far end, deep enough for doubles."""
    value = 1.0
    for m in range(200, 0, -1):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        value = 1.0 + even / value
        k = m - 1
        odd = -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1))
        value = 1.0 + odd / value
    return value
