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
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import reduce
from itertools import product
from typing import TYPE_CHECKING, ClassVar

from hookloop.core.ticks import grain
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
        """Return the tick before which this is not due again, having been looked at when the clock read ``now``.

        That is the next of its ticks for instants, ``now`` itself inside a span, and infinity if it never will be.
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
        """Return a tick before which none of the set lies that a later look could find.

        Instants lie after ``now``, which was looked at already; a span may be stood in at ``now`` and ever after.
        """
        raise NotImplementedError

    def alternatives(self) -> tuple[tuple[Leaf, ...], ...]:
        return ((self,),)

    def __invert__(self) -> Schedule:
        return Not(self)


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
        # Instants are sparse, so the complement is here or next to here.
        return now if self.contains(now) else now + grain(self.counted_on)

    def __invert__(self) -> Schedule:
        return self.inner

    def __str__(self) -> str:
        return f"not {self.inner}"


@dataclass(frozen=True, slots=True)
class And(Schedule):
    """Due where all parts meet: an intersection of sets."""

    parts: tuple[Schedule, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", _without_nesting(And, self.parts))

    def on(self, clock: str) -> Schedule:
        return And(tuple(part.on(clock) for part in self.parts))

    def alternatives(self) -> tuple[tuple[Leaf, ...], ...]:
        choices = product(*(part.alternatives() for part in self.parts))
        return tuple(tuple(leaf for group in choice for leaf in group) for choice in choices)

    def __invert__(self) -> Schedule:
        return union(tuple(~part for part in self.parts))

    def __str__(self) -> str:
        return " and ".join(f"({part})" if isinstance(part, Or) else str(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Or(Schedule):
    """Due where any part is: a union of sets."""

    parts: tuple[Schedule, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", _without_nesting(Or, self.parts))

    def on(self, clock: str) -> Schedule:
        return Or(tuple(part.on(clock) for part in self.parts))

    def alternatives(self) -> tuple[tuple[Leaf, ...], ...]:
        return tuple(group for part in self.parts for group in part.alternatives())

    def __invert__(self) -> Schedule:
        return reduce(lambda left, right: left & right, (~part for part in self.parts))

    def __str__(self) -> str:
        return " or ".join(map(str, self.parts))


def _without_nesting(kind: type[And] | type[Or], parts: tuple[Schedule, ...]) -> tuple[Schedule, ...]:
    """Return a combination's parts with those of parts of the same kind in their place: brackets mean nothing there."""
    return tuple(leaf for part in parts for leaf in (part.parts if isinstance(part, kind) else (part,)))


def union(parts: tuple[Schedule, ...]) -> Schedule:
    """Return the union of the parts; of none, a schedule that is never due."""
    if not parts:
        return Never()
    return reduce(lambda left, right: left | right, parts)
