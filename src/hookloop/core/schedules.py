"""Schedules are values: sets of ticks on a named clock, which know when they are next due.

Two kinds of set. *Instants* (``Every``, ``At``, ``Once``) are due when one of their ticks was passed since
the last look, however far the clock jumped, once and without a catch-up burst. *Spans* (``Window``,
``Cycle``, ``Always``) are due on every look at which the clock stands inside them. ``&``, ``|`` and ``~`` are
intersection, union and complement of the sets, also across clocks.

``next(now)`` looks ahead: the schedule is not due before that tick. The dispatcher holds one such number
for all hooks of an event, which is why a thousand idle hooks cost one comparison.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from functools import reduce
from itertools import product
from typing import TYPE_CHECKING, ClassVar

from hookloop.core.ticks import grain, plain, require_number, unit
from hookloop.errors import ScheduleError

if TYPE_CHECKING:
    from hookloop.core.context import HookContext

INF = math.inf
BEFORE_START = -1  # a clock that has never been looked at: tick 0 lies ahead of it


class Schedule:
    """When something is due. Combine with ``&``, ``|`` and ``~``; write as text with ``str``."""

    __slots__ = ()

    def __and__(self, other: Schedule) -> Schedule:
        return And((self, other))

    def __or__(self, other: Schedule) -> Schedule:
        return Or((self, other))

    def __invert__(self) -> Schedule:
        raise NotImplementedError

    def on(self, clock: str) -> Schedule:
        """Return this schedule counted on ``clock`` wherever it does not name a clock itself."""
        raise NotImplementedError

    def alternatives(self) -> tuple[tuple[Leaf, ...], ...]:
        """Return the schedule as an "or" of "and"s of leaves, the form it is evaluated in."""
        raise NotImplementedError

    def next(self, now: float) -> float:
        """Return the first tick after ``now`` at which this can be due; infinity if never.

        Only for a schedule on one clock. Intersections may answer a little early, never late.
        """
        from hookloop.core.due import only_clock_next  # the evaluator stands on this module

        return only_clock_next(self, now)

    def is_due(self, now: float, since: float = BEFORE_START) -> bool:
        """Tell whether this is due at ``now`` when it was last looked at when the clock read ``since``."""
        from hookloop.core.due import only_clock_is_due  # the evaluator stands on this module

        return only_clock_is_due(self, now, since)


class Leaf(Schedule):
    """A schedule that is not a combination: one set of ticks on one clock."""

    __slots__ = ()

    is_instant: ClassVar[bool] = False
    """Whether passing a tick counts (instants), or only standing on one (spans)."""

    is_code: ClassVar[bool] = False
    """Whether a function decides, which no text can hold."""

    @property
    def counted_on(self) -> str | None:
        """The clock of the ticks; None where none was named."""
        return getattr(self, "clock", None)

    def on(self, clock: str) -> Schedule:
        names_a_clock = {field.name for field in fields(self)} >= {"clock"}  # type: ignore[arg-type]  # all leaves are dataclasses
        return replace(self, clock=clock) if names_a_clock and self.counted_on is None else self  # type: ignore[type-var]

    def contains(self, tick: float) -> bool:
        """Tell whether ``tick`` belongs to the set."""
        raise NotImplementedError

    def after(self, now: float) -> float:
        """Return a tick after ``now`` before which none of the set lies."""
        raise NotImplementedError

    def alternatives(self) -> tuple[tuple[Leaf, ...], ...]:
        return ((self,),)

    def __invert__(self) -> Schedule:
        return Not(self)


@dataclass(frozen=True, slots=True)
class Every(Leaf):
    """Each multiple of ``n``, from just after ``start`` up to and with ``end``; never at 0."""

    n: float
    clock: str | None = None
    start: float = 0
    end: float = INF

    def __post_init__(self) -> None:
        require_number("every", self.n)
        if not 0 < self.n < INF:
            raise ScheduleError(
                f"An interval must be above 0, got every {self.n}; leave the schedule out to run always."
            )
        if self.end <= self.start:
            raise ScheduleError(
                f"every {self.n} from {self.start} until {self.end} is empty: 'until' must be above 'from'."
            )

    is_instant: ClassVar[bool] = True

    def contains(self, tick: float) -> bool:
        return self.start < tick <= self.end and tick % self.n == 0

    def after(self, now: float) -> float:
        tick = (max(now, self.start, 0) // self.n + 1) * self.n
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
        object.__setattr__(self, "clock", clock)

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


@dataclass(frozen=True, slots=True)
class Window(Leaf):
    """The span ``begin <= tick < end``."""

    begin: float = 0
    end: float = INF
    clock: str | None = None

    def __post_init__(self) -> None:
        require_number("from", self.begin)
        require_number("until", self.end)
        if not 0 <= self.begin < self.end:
            raise ScheduleError(f"Window({self.begin}, {self.end}) is empty: it needs 0 <= begin < end.")

    def contains(self, tick: float) -> bool:
        return self.begin <= tick < self.end

    def after(self, now: float) -> float:
        tick = max(self.begin, now + grain(self.clock))
        return tick if tick < self.end else INF

    def __invert__(self) -> Schedule:
        before = (Window(0, self.begin, self.clock),) if self.begin > 0 else ()
        behind = (Window(self.end, INF, self.clock),) if self.end < INF else ()
        return _union((*before, *behind))

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
        positions = tuple(sorted(set(active)))
        if isinstance(length, bool) or length < 1 or length != int(length):
            raise ScheduleError(f"A cycle's length must be a whole number of at least 1, got {length}.")
        if not positions:
            raise ScheduleError(
                f"Cycle({length}, active=()) would never be due: name at least one position from 1 to {length}."
            )
        outside = [position for position in positions if not 1 <= position <= length]
        if outside:
            raise ScheduleError(
                f"Position {outside[0]} is outside a cycle of {length}: positions run from 1 to {length}."
            )
        object.__setattr__(self, "length", int(length))
        object.__setattr__(self, "active", positions)
        object.__setattr__(self, "clock", clock)

    def contains(self, tick: float) -> bool:
        return tick >= 0 and int(tick // 1 % self.length) + 1 in self.active

    def after(self, now: float) -> float:
        if grain(self.clock) == 0 and self.contains(now):
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


@dataclass(frozen=True, slots=True)
class Always(Leaf):
    """Every look."""

    def contains(self, tick: float) -> bool:
        return True

    def after(self, now: float) -> float:
        return now

    def __invert__(self) -> Schedule:
        return Never()

    def __str__(self) -> str:
        return "always"


@dataclass(frozen=True, slots=True)
class Never(Leaf):
    """No look at all."""

    def contains(self, tick: float) -> bool:
        return False

    def after(self, now: float) -> float:
        return INF

    def __invert__(self) -> Schedule:
        return Always()

    def __str__(self) -> str:
        return "never"


@dataclass(frozen=True, slots=True)
class When(Leaf):
    """Looks at which ``predicate(context)`` holds. Opaque: asked each time, never looked ahead."""

    predicate: Callable[[HookContext], object]

    is_code: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not callable(self.predicate):
            raise ScheduleError(f"When takes a function of the context, got {self.predicate!r}.")

    def contains(self, tick: float) -> bool:
        raise ScheduleError("When(...) depends on the context, not on a tick.")

    def after(self, now: float) -> float:
        return now

    def __str__(self) -> str:
        return f"when {getattr(self.predicate, '__name__', repr(self.predicate))}"


@dataclass(frozen=True, slots=True)
class Not(Leaf):
    """The complement of instants, or a predicate turned round."""

    inner: Leaf

    @property
    def counted_on(self) -> str | None:
        return self.inner.counted_on

    def on(self, clock: str) -> Schedule:
        return ~self.inner.on(clock)

    def contains(self, tick: float) -> bool:
        return not self.inner.contains(tick)

    def after(self, now: float) -> float:
        tick = now + grain(self.counted_on)
        # Instants are sparse, so the complement is near; where it is not, a tick too early is allowed.
        for _ in range(64):
            if self.contains(tick) or tick == now:
                break
            tick += 1
        return tick

    def __invert__(self) -> Schedule:
        return self.inner

    def __str__(self) -> str:
        return f"not {self.inner}"


@dataclass(frozen=True, slots=True)
class And(Schedule):
    """Due where all parts meet: an intersection of sets."""

    parts: tuple[Schedule, ...]

    def on(self, clock: str) -> Schedule:
        return And(tuple(part.on(clock) for part in self.parts))

    def alternatives(self) -> tuple[tuple[Leaf, ...], ...]:
        choices = product(*(part.alternatives() for part in self.parts))
        return tuple(tuple(leaf for group in choice for leaf in group) for choice in choices)

    def __and__(self, other: Schedule) -> Schedule:
        return And((*self.parts, other))

    def __invert__(self) -> Schedule:
        return _union(tuple(~part for part in self.parts))

    def __str__(self) -> str:
        return " and ".join(f"({part})" if isinstance(part, Or) else str(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Or(Schedule):
    """Due where any part is: a union of sets."""

    parts: tuple[Schedule, ...]

    def on(self, clock: str) -> Schedule:
        return Or(tuple(part.on(clock) for part in self.parts))

    def alternatives(self) -> tuple[tuple[Leaf, ...], ...]:
        return tuple(group for part in self.parts for group in part.alternatives())

    def __or__(self, other: Schedule) -> Schedule:
        return Or((*self.parts, other))

    def __invert__(self) -> Schedule:
        return reduce(lambda left, right: left & right, (~part for part in self.parts))

    def __str__(self) -> str:
        return " or ".join(map(str, self.parts))


def _union(parts: tuple[Schedule, ...]) -> Schedule:
    if not parts:
        return Never()
    return reduce(lambda left, right: left | right, parts)
