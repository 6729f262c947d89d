"""How schedules are evaluated: looking ahead, and deciding at a given reading of the clocks.

A schedule is taken apart into alternatives ("or") of tracks ("and"), each track being the leaves that are
counted on one clock. Whether it is due and how far it can be looked ahead are both answered from the tracks,
so the two can never disagree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hookloop.core.schedules import BEFORE_START, INF, Always, Leaf, Never, Not, Schedule, When
from hookloop.errors import ScheduleError

if TYPE_CHECKING:
    from hookloop.core.context import HookContext

Reading = Mapping[str, float]

LEAPS = 256  # how many candidates an intersection tries before it answers "not before this one"


@dataclass(frozen=True, slots=True)
class Track:
    """The leaves of one alternative that share a clock: an intersection of sets of ticks."""

    clock: str
    leaves: tuple[Leaf, ...]

    @property
    def is_instant(self) -> bool:
        """Whether any leaf counts passed ticks."""
        return any(leaf.is_instant for leaf in self.leaves)

    def contains(self, tick: float) -> bool:
        """Tell whether all leaves contain the tick."""
        return all(leaf.contains(tick) for leaf in self.leaves)

    def after(self, now: float) -> float:
        """Return a tick after ``now`` before which no common tick lies."""
        candidate = max(leaf.after(now) for leaf in self.leaves)
        for _ in range(LEAPS):
            if candidate == INF:
                break
            later = max(candidate if leaf.contains(candidate) else leaf.after(candidate) for leaf in self.leaves)
            if later == candidate:
                break
            candidate = later
        return candidate

    def is_due(self, now: float, since: float) -> bool:
        """Tell whether a tick was passed since ``since`` (instants) or is stood upon (spans)."""
        if not self.is_instant:
            return self.contains(now)
        candidate = self.after(since)
        while candidate <= now:
            if self.contains(candidate):
                return True
            candidate = self.after(candidate)
        return False


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way for a schedule to be due: all its tracks, and all its predicates."""

    tracks: tuple[Track, ...]
    predicates: tuple[When | Not, ...]

    def tracks_due(self, now: Reading, since: Reading) -> bool:
        """Tell whether all tracks are due; what the clocks alone can say."""
        return all(track.is_due(now[track.clock], since.get(track.clock, BEFORE_START)) for track in self.tracks)

    def predicates_hold(self, context: HookContext | None) -> bool:
        """Ask the predicates."""
        return all(_holds(predicate, context) for predicate in self.predicates)

    def bound(self, now: Reading) -> tuple[str, float] | None:
        """Return a clock and the value before which this cannot be due; None if it can be at once."""
        instants = [track for track in self.tracks if track.is_instant]
        if not self.tracks or len(instants) > 1:
            return None  # two clocks must be passed at one and the same look, so every look counts
        # Any track bounds the whole; instants reach farthest ahead.
        track = instants[0] if instants else self.tracks[0]
        return track.clock, track.after(now[track.clock])


class Rule:
    """A schedule ready to be evaluated, every leaf bound to a clock."""

    __slots__ = ("alternatives", "clocks", "has_predicates", "schedule")

    def __init__(self, schedule: Schedule, clock: str) -> None:
        self.schedule = schedule.on(clock)
        found = (_alternative(leaves, clock) for leaves in self.schedule.alternatives())
        self.alternatives = tuple(alternative for alternative in found if alternative is not None)
        self.clocks = tuple(sorted({track.clock for way in self.alternatives for track in way.tracks}))
        self.has_predicates = any(way.predicates for way in self.alternatives)

    @property
    def is_always(self) -> bool:
        """Whether there is nothing to wait for."""
        return any(not way.tracks and not way.predicates for way in self.alternatives)

    def is_due(self, now: Reading, since: Reading, context: HookContext | None = None) -> bool:
        """Tell whether the schedule is due, given the reading now and at the last look."""
        return any(way.tracks_due(now, since) and way.predicates_hold(context) for way in self.alternatives)

    def bounds(self, now: Reading) -> dict[str, float] | None:
        """Return clock values of which one must be reached before this can be due; None to ask each time."""
        bounds: dict[str, float] = {}
        for way in self.alternatives:
            bound = way.bound(now)
            if bound is None:
                return None
            clock, tick = bound
            bounds[clock] = min(tick, bounds.get(clock, INF))
        return bounds


def only_clock_next(schedule: Schedule, now: float) -> float:
    """Look ahead on a schedule that is counted on a single clock."""
    rule, clock = _on_one_clock(schedule)
    bounds = rule.bounds({clock: now})
    if bounds is None:
        return now
    return bounds.get(clock, INF)


def only_clock_is_due(schedule: Schedule, now: float, since: float) -> bool:
    """Decide on a schedule that is counted on a single clock."""
    rule, clock = _on_one_clock(schedule)
    return rule.is_due({clock: now}, {clock: since})


def _on_one_clock(schedule: Schedule) -> tuple[Rule, str]:
    named = {leaf.counted_on for group in schedule.alternatives() for leaf in group} - {None}
    clock = next(iter(named)) if named else None
    rule = Rule(schedule, clock or "tick")
    if len(named) > 1:
        raise ScheduleError(
            f"'{schedule}' is counted on {len(named)} clocks ({', '.join(sorted(map(str, named)))}), so one number "
            "does not say when it is due; ask each part."
        )
    return rule, clock or "tick"


def _alternative(leaves: tuple[Leaf, ...], clock: str) -> Alternative | None:
    by_clock: dict[str, list[Leaf]] = {}
    predicates: list[When | Not] = []
    for leaf in leaves:
        if isinstance(leaf, Never):
            return None
        if isinstance(leaf, Always):
            continue
        if isinstance(leaf, When) or (isinstance(leaf, Not) and isinstance(leaf.inner, When)):
            predicates.append(leaf)
        else:
            by_clock.setdefault(leaf.counted_on or clock, []).append(leaf)
    tracks = tuple(Track(name, tuple(group)) for name, group in by_clock.items())
    return Alternative(tracks, tuple(predicates))


def _holds(predicate: When | Not, context: HookContext | None) -> bool:
    if context is None:
        raise ScheduleError(f"'{predicate}' asks the context, so it cannot be decided from clocks alone.")
    if isinstance(predicate, When):
        return bool(predicate.predicate(context))
    assert isinstance(predicate.inner, When)
    return not predicate.inner.predicate(context)
