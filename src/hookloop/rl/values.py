"""Values that change during training: learning rates, clip ranges, coefficients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, Protocol

from hookloop.errors import ScheduleError


class ValueSchedule(Protocol):
    """A value as a function of progress, which runs from 0 to 1."""

    def at(self, progress: float) -> float:
        """Return the value at this progress; exactly the last value at 1 and beyond."""
        ...


@dataclass(frozen=True, slots=True)
class Linear:
    """A straight line from ``start`` to ``end``."""

    start: float
    end: float = 0.0
    kind: Literal["linear"] = "linear"

    def at(self, progress: float) -> float:
        """Return the value at this progress."""
        progress = _within(progress)
        return self.end if progress == 1 else self.start + (self.end - self.start) * progress


@dataclass(frozen=True, slots=True)
class Cosine:
    """Half a cosine wave from ``start`` to ``end``: slow, fast, slow."""

    start: float
    end: float = 0.0
    kind: Literal["cosine"] = "cosine"

    def at(self, progress: float) -> float:
        """Return the value at this progress."""
        progress = _within(progress)
        if progress == 1:
            return self.end
        return self.end + (self.start - self.end) * (1 + math.cos(math.pi * progress)) / 2


@dataclass(frozen=True, slots=True)
class Exponential:
    """A constant ratio per unit of progress, from ``start`` to ``end``; both above zero."""

    start: float
    end: float
    kind: Literal["exponential"] = "exponential"

    def __post_init__(self) -> None:
        if self.start <= 0 or self.end <= 0:
            raise ScheduleError(
                f"An exponential needs two values above 0, got {self.start} and {self.end}; use Linear to reach 0."
            )

    def at(self, progress: float) -> float:
        """Return the value at this progress."""
        progress = _within(progress)
        return self.end if progress == 1 else self.start * (self.end / self.start) ** progress


@dataclass(frozen=True, slots=True)
class Piecewise:
    """Straight lines between points of (progress, value)."""

    points: tuple[tuple[float, float], ...]
    kind: Literal["piecewise"] = "piecewise"

    def __post_init__(self) -> None:
        positions = [x for x, _ in self.points]
        if len(positions) < 2 or positions != sorted(set(positions)) or positions[0] != 0 or positions[-1] != 1:
            raise ScheduleError(
                f"Piecewise needs points of rising progress from 0 to 1, got {positions}; "
                "for example ((0, 1e-3), (0.1, 1e-4), (1, 0))."
            )

    def at(self, progress: float) -> float:
        """Return the value at this progress."""
        progress = _within(progress)
        for (x0, y0), (x1, y1) in pairwise(self.points):
            if progress < x1:
                return y0 + (y1 - y0) * (progress - x0) / (x1 - x0)
        return self.points[-1][1]


def _within(progress: float) -> float:
    return min(max(progress, 0.0), 1.0)
