"""Schedules of single ticks: due when one of them was passed since the last look."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from hookloop.core.schedules import INF, Leaf
from hookloop.core.ticks import known_as, plain, require_number, unit
from hookloop.errors import ScheduleError


@dataclass(frozen=True, slots=True)
class Every(Leaf):
    """Each multiple of ``n``, from just after ``start`` up to and with ``end``; never at 0."""

    n: float
    clock: str | None = None
    start: float = 0
    end: float = INF

    def __post_init__(self) -> None:
        object.__setattr__(self, "clock", known_as(self.clock))
        require_number("every", self.n)
        require_number("from", self.start)
        require_number("until", self.end)
        if not self.n > 0:
            raise ScheduleError(
                f"An interval must be above 0, got every {self.n}; leave the schedule out to run always."
            )
        if self.n == INF:
            raise ScheduleError(
                "An interval must be finite, got every inf; write Never() for a schedule without any tick."
            )
        if not 0 <= self.start < self.end:
            raise ScheduleError(
                f"every {self.n} from {self.start} until {self.end} is empty: it needs 0 <= from < until."
            )

    is_instant: ClassVar[bool] = True

    def contains(self, tick: float) -> bool:
        # By counting intervals: the remainder of a division is not exact for fractions of a second.
        return self.start < tick <= self.end and tick == round(tick / self.n) * self.n

    def after(self, now: float) -> float:
        passed = max(now, self.start)
        intervals = math.floor(passed / self.n) + 1
        if intervals * self.n <= passed:  # the division was rounded down
            intervals += 1
        tick = intervals * self.n
        return tick if tick <= self.end else INF

    def __str__(self) -> str:
        begin = f" from {plain(self.start)}" if self.start else ""
        end = f" until {plain(self.end)}" if self.end < INF else ""
        return f"every {plain(self.n)}{unit(self.clock)}{begin}{end}"


@dataclass(frozen=True, slots=True, init=False)
class At(Leaf):
    """The given ticks, each once."""

    ticks: tuple[float, ...]
    clock: str | None = None

    def __init__(self, ticks: float | Iterable[float], clock: str | None = None) -> None:
        given = tuple(ticks) if isinstance(ticks, Iterable) else (ticks,)
        if not given:
            raise ScheduleError("At() needs at least one tick; for a schedule without any write Never().")
        for tick in given:
            require_number("at", tick)
            if not 0 <= tick < INF:
                raise ScheduleError(f"A tick must be 0 or above and finite, got {tick}.")
        object.__setattr__(self, "ticks", tuple(sorted(set(given))))
        object.__setattr__(self, "clock", known_as(clock))

    is_instant: ClassVar[bool] = True

    def contains(self, tick: float) -> bool:
        return tick in self.ticks

    def after(self, now: float) -> float:
        return next((tick for tick in self.ticks if tick > now), INF)

    def __str__(self) -> str:
        return f"at {','.join(plain(tick) for tick in self.ticks)}{unit(self.clock)}"


@dataclass(frozen=True, slots=True, init=False)
class Once(At):
    """One tick, once in the life of a run: resumes included."""

    def __init__(self, ticks: float | Iterable[float] = 0, clock: str | None = None) -> None:
        At.__init__(self, ticks, clock)
        if len(self.ticks) != 1:
            raise ScheduleError(f"Once takes one tick, got {list(self.ticks)}; write At for several.")

    def __str__(self) -> str:
        return f"once at {plain(self.ticks[0])}{unit(self.clock)}"
