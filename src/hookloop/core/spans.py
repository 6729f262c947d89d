"""Schedules of stretches of ticks: due on every look while the clock stands inside them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from hookloop.core.schedules import BEFORE_START, INF, Leaf, Never, Schedule, union
from hookloop.core.ticks import known_as, plain, require_number, unit
from hookloop.errors import ScheduleError


@dataclass(frozen=True, slots=True)
class Window(Leaf):
    """The span ``begin <= tick < end``."""

    begin: float = 0
    end: float = INF
    clock: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "clock", known_as(self.clock))
        require_number("from", self.begin)
        require_number("until", self.end)
        if not 0 <= self.begin < self.end:
            raise ScheduleError(f"Window({self.begin}, {self.end}) is empty: it needs 0 <= begin < end.")

    def contains(self, tick: float) -> bool:
        return self.begin <= tick < self.end

    def after(self, now: float) -> float:
        tick = max(self.begin, now)
        return tick if tick < self.end else INF

    def __invert__(self) -> Schedule:
        before = (Window(0, self.begin, self.clock),) if self.begin > 0 else ()
        behind = (Window(self.end, INF, self.clock),) if self.end < INF else ()
        return union((*before, *behind))

    def __str__(self) -> str:
        begin = f"from {plain(self.begin)}" if self.begin or self.end == INF else ""
        end = f"until {plain(self.end)}" if self.end < INF else ""
        return " ".join(part for part in (begin, end) if part) + unit(self.clock)


@dataclass(frozen=True, slots=True, init=False)
class Cycle(Leaf):
    """The ``active`` positions (counted from 1) of every ``length`` ticks, counted from tick 0."""

    length: int
    active: tuple[int, ...]
    clock: str | None = None

    def __init__(self, length: int, active: Iterable[int], clock: str | None = None) -> None:
        if not isinstance(active, Iterable):  # type: ignore[redundant-expr]  # users pass anything
            raise ScheduleError(f"A cycle's positions must be a list such as [1, 2], got {active!r}.")
        active = tuple(active)
        if not _is_whole(length) or length < 1:
            raise ScheduleError(f"A cycle's length must be a whole number of at least 1, got {length!r}.")
        for position in active:
            if not _is_whole(position):
                raise ScheduleError(f"A position in a cycle must be a whole number, got {position!r}.")
        positions = tuple(sorted(set(active)))
        if not positions:
            raise ScheduleError(
                f"Cycle({length}, active=()) would never be due: name at least one position from 1 to {length}."
            )
        outside = [position for position in positions if not 1 <= position <= length]
        if outside:
            raise ScheduleError(
                f"Position {outside[0]} is outside a cycle of {length}: positions run from 1 to {length}."
            )
        object.__setattr__(self, "length", length)
        object.__setattr__(self, "active", positions)
        object.__setattr__(self, "clock", known_as(clock))

    def contains(self, tick: float) -> bool:
        return tick >= 0 and int(tick // 1 % self.length) + 1 in self.active

    def after(self, now: float) -> float:
        if self.contains(now):
            return now
        tick = math.floor(max(now, BEFORE_START)) + 1
        position = tick % self.length + 1
        waits = ((active - position) % self.length for active in self.active)
        return tick + min(waits)

    def __invert__(self) -> Schedule:
        idle = tuple(position for position in range(1, self.length + 1) if position not in self.active)
        return Cycle(self.length, idle, self.clock) if idle else Never()

    def __str__(self) -> str:
        return f"cycle {self.length}{unit(self.clock)} on {','.join(map(str, self.active))}"


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
