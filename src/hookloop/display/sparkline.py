"""Curves in a few letters, and in a bounded number of points."""

from __future__ import annotations

import math
from collections.abc import Sequence

SPARK_LETTERS = 24
BARS = "▁▂▃▄▅▆▇█"
ASCII_BARS = "_.-=+*#@"


def sparkline(values: Sequence[float], letters: int = SPARK_LETTERS, bars: str = BARS) -> str:
    """Return a curve as a few letters: the mean of each part of it, between its lowest and its highest."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite or letters < 1:
        return ""
    count = min(letters, len(finite))
    parts = [finite[k * len(finite) // count : (k + 1) * len(finite) // count] for k in range(count)]
    # Divided before they are summed and compared: the largest numbers there are have a mean and a distance, too.
    means = [sum(value / len(part) for value in part) for part in parts]
    low, high = min(means), max(means)
    span = high / 2 - low / 2
    if span <= 0:
        return bars[0] * count
    top = len(bars) - 1
    return "".join(bars[min(round((mean / 2 - low / 2) / span * top), top)] for mean in means)


class History:
    """The course of a metric in at most ``most_points`` points, each the mean of as many values; NaN is left out."""

    __slots__ = ("_count", "_mean", "_means", "_most_points", "_stride", "latest")

    def __init__(self, most_points: int = 64) -> None:
        self.latest = math.nan
        self._most_points = most_points
        self._means: list[float] = []
        self._stride = 1
        self._mean, self._count = 0.0, 0

    def add(self, value: float) -> None:
        """Take the next value."""
        self.latest = value
        if not math.isfinite(value):
            return
        self._count += 1
        self._mean += value / self._count - self._mean / self._count
        if self._count == self._stride:
            self._means.append(self._mean)
            self._mean, self._count = 0.0, 0
            if len(self._means) >= self._most_points:
                self._halve()

    def points(self) -> tuple[float, ...]:
        """Return the points so far, the one under way included."""
        return (*self._means, self._mean) if self._count else tuple(self._means)

    def _halve(self) -> None:
        pairs = zip(self._means[::2], self._means[1::2], strict=False)
        self._means = [first / 2 + second / 2 for first, second in pairs]
        self._stride *= 2
