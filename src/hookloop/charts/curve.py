"""Curves as they are drawn: gaps where nothing finite was measured, fewer points where more cannot be seen."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, takewhile

from hookloop.charts.palette import COLOURS, colour_of, dash_of

MOST_BUCKETS = 1000
FLAT_SHARE = 1e-9
MOST_LABEL_LETTERS = 48


@dataclass(frozen=True, slots=True)
class Curve:
    """Values of one metric of one run, in the order in which they were measured.

    Args:
        name: The metric.
        x: Where each was measured, by the clock of the chart.
        y: What was measured; NaN and infinity leave a gap.
        run: The run, which decides the colour.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    run: str = ""

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise ValueError(f"The curve {self.name!r} needs an x for every y, got {len(self.x)} and {len(self.y)}.")

    def __len__(self) -> int:
        return len(self.y)

    @property
    def gaps(self) -> list[tuple[float, float, float]]:
        """Every point that is not finite: where it is, the value, and the height at which to mark it."""
        found: list[tuple[float, float, float]] = []
        height = next((value for value in self.y if math.isfinite(value)), 0.0)
        for x, value in zip(self.x, self.y, strict=True):
            if math.isfinite(value):
                height = value
            else:
                found.append((x, value, height))
        return found


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart: curves that share their axes.

    Args:
        title: What is shown.
        curves: The curves; of each run in its colour, of each further metric in another dash. Of one run alone each
            metric has its colour.
        x_name: The clock below.
        y_name: What the values are, with their unit.
        smooth_points: Draw the mean over this many points, and the curve itself pale behind it; 1 draws it as it is.
        marks: Where something happened, with what it was, such as the step of a resume.
        is_log_x: Whether equal distances below are equal ratios; all x are above 0 then. Pictures alone.
    """

    title: str
    curves: Sequence[Curve]
    x_name: str = ""
    y_name: str = ""
    smooth_points: int = 1
    marks: Sequence[tuple[float, str]] = field(default=())
    is_log_x: bool = False

    def __post_init__(self) -> None:
        if self.smooth_points < 1:
            raise ValueError(f"A panel smooths over at least 1 point, got {self.smooth_points}.")

    @property
    def runs(self) -> list[str]:
        """The runs of its curves, in order."""
        return list(dict.fromkeys(curve.run for curve in self.curves))

    @property
    def names(self) -> list[str]:
        """The metrics of its curves, in order."""
        return list(dict.fromkeys(curve.name for curve in self.curves))

    @property
    def labels(self) -> dict[str, str]:
        """What to call each metric beside its curve: without the words before a slash that all of them begin with."""
        words = [name.split("/")[:-1] for name in self.names]
        shared = list(takewhile(lambda column: len(set(column)) == 1, zip(*words, strict=False)))
        begin = sum(len(column[0]) + 1 for column in shared) if len(words) > 1 else 0
        return {name: label_of(name[begin:]) for name in self.names}

    def look_of(self, curve: Curve, runs: Sequence[str]) -> tuple[str, str]:
        """Return the colour and the dash of a curve, in a chart beside those of ``runs``."""
        metric = self.names.index(curve.name)
        if len(runs) > 1:
            return colour_of(runs.index(curve.run)), dash_of(metric)
        return colour_of(metric), dash_of(metric // len(COLOURS))

    @property
    def flat_range(self) -> tuple[float, float] | None:
        """The heights to show if all values are as good as equal: what rounding left of them is no curve."""
        finite = [value for curve in self.curves for value in curve.y if math.isfinite(value)]
        if not finite or max(finite) - min(finite) > FLAT_SHARE * max(map(abs, finite)):
            return None
        middle = min(finite)
        room = abs(middle) * 0.1 or 1.0
        return middle - room, middle + room


def runs_of(panels: Sequence[Panel]) -> list[str]:
    """Return the runs of all panels, in order: the place of a run decides its colour in every panel."""
    return list(dict.fromkeys(run for panel in panels for run in panel.runs))


def label_of(name: str) -> str:
    """Return a name as it fits beside a curve: its beginning and its end."""
    if len(name) <= MOST_LABEL_LETTERS:
        return name
    return f"{name[: MOST_LABEL_LETTERS - 21]}\N{HORIZONTAL ELLIPSIS}{name[-20:]}"


def smoothed(curve: Curve, points: int) -> Curve:
    """Return the mean of each point and its neighbours, ``points`` of them in all, fewer at the ends.

    What is not finite takes no part, and stays where it is.
    """
    if points <= 1:
        return curve
    before, after = (points - 1) // 2, points // 2
    means: list[float] = []
    for k, value in enumerate(curve.y):
        # Each window is summed anew: in a running sum one huge value would leave nothing of those after it.
        window = [each for each in curve.y[max(0, k - before) : k + after + 1] if math.isfinite(each)]
        means.append(math.fsum(each / len(window) for each in window) if math.isfinite(value) else value)
    return replace(curve, y=means)


def thinned(curve: Curve, buckets: int = MOST_BUCKETS) -> Curve:
    """Return a curve that looks the same at ``buckets`` columns of pixels.

    Of the points in a column the first, the last, the lowest, the highest and the first that is not finite stay, each
    where it was: nothing is made up, and no peak is lost.
    """
    if buckets < 1:
        raise ValueError(f"A curve is thinned to at least 1 bucket, got {buckets}.")
    if len(curve) <= 4 * buckets:
        return curve
    low, high = min(curve.x), max(curve.x)
    width = (high - low) / buckets or 1.0
    columns = groupby(range(len(curve)), key=lambda k: min(int((curve.x[k] - low) / width), buckets - 1))
    kept = [k for _, column in columns for k in _worth_keeping(curve.y, list(column))]
    return replace(curve, x=[curve.x[k] for k in kept], y=[curve.y[k] for k in kept])


def _worth_keeping(y: Sequence[float], column: list[int]) -> Iterator[int]:
    finite = [k for k in column if math.isfinite(y[k])]
    kept = {column[0], column[-1]}
    if finite:
        kept |= {min(finite, key=y.__getitem__), max(finite, key=y.__getitem__)}
    if len(finite) < len(column):
        kept.add(next(k for k in column if not math.isfinite(y[k])))
    yield from sorted(kept)
