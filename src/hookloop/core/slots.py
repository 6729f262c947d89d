"""A slot: one hook on one event, with its schedule's memory, its failures in a row and its cost."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from hookloop.core.clocks import SECONDS
from hookloop.core.context import HookContext
from hookloop.core.costs import HookCost
from hookloop.core.due import Alternative, Reading, Rule
from hookloop.core.schedules import BEFORE_START, INF

log = logging.getLogger("hookloop.hooks")

Decide = Callable[[bool], bool]


class _NotRun:
    """What a slot's call returns when its hook decided not to run."""


NOT_RUN: Final = _NotRun()


class Slot:
    """One hook on one event. Plain attributes: the dispatcher touches them on every call."""

    __slots__ = (
        "bounds",
        "call",
        "calls",
        "clock",
        "decide",
        "event",
        "failed_at",
        "guard",
        "has_bounds",
        "is_forced",
        "is_shared",
        "max_ns",
        "name",
        "order",
        "pending",
        "previous",
        "rule",
        "serves",
        "since",
        "strikes",
        "timed_calls",
        "timed_ns",
        "untraced_call",
    )

    def __init__(
        self,
        name: str,
        event: str,
        call: Callable[[HookContext], Any],
        *,
        clock: str,
        rule: Rule | None = None,
        guard: Callable[[HookContext], Any] | None = None,
        serves: tuple[str, ...] = (),
        decide: Decide = bool,
    ) -> None:
        self.name = name
        self.event = event
        self.clock = clock
        self.rule = rule
        self.guard = guard
        self.serves = serves
        self.call = call
        self.untraced_call = call
        self.decide = decide
        # Ranks must agree, but each has a stopwatch of its own: main's look decides for all.
        self.is_shared = decide is not bool and rule is not None and SECONDS in rule.clocks
        self.order = 0
        self.since: dict[str, float] = {}
        self.previous: float | None = None
        self.bounds: dict[str, float] = {}
        self.has_bounds = False
        self.pending: tuple[Alternative, ...] = ()
        self.is_forced = False
        self.strikes = 0
        self.failed_at = -1
        self.calls = 0
        self.timed_calls = 0
        self.timed_ns = 0
        self.max_ns = 0
        self.look_ahead()

    @property
    def is_conditional(self) -> bool:
        """Whether the hook may be passed over at this event."""
        return self.rule is not None or self.guard is not None

    @property
    def clocks(self) -> tuple[str, ...]:
        """The clocks its memory is kept on."""
        rule_clocks = self.rule.clocks if self.rule is not None else ()
        return tuple(dict.fromkeys((*rule_clocks, *((self.clock,) if self.guard else ()))))

    def look_ahead(self) -> None:
        """Work out, from the memory, the clock values of which one must be reached before this can be due."""
        seen = {clock: self.since.get(clock, BEFORE_START) for clock in self.clocks}
        bounds = self.rule.bounds(seen) if self.rule is not None and not self.is_shared else None
        self.has_bounds = bounds is not None
        self.bounds = bounds or {}

    def memory(self) -> dict[str, float]:
        """Return the reading at the last look, for every clock that counts."""
        return {clock: self.since.get(clock, BEFORE_START) for clock in self.clocks}

    def remember(self, reading: Reading) -> None:
        """Take note of a look at this reading, without deciding anything."""
        self.since = {clock: reading[clock] for clock in self.clocks}
        self.look_ahead()

    def count_new_clocks_from(self, reading: Reading) -> None:
        """Let clocks that the memory does not know, because the schedule was changed, count from this reading on."""
        self.since.update({clock: reading[clock] for clock in self.clocks if clock not in self.since})
        self.look_ahead()

    def forgive(self) -> None:
        """Forget the failures in a row."""
        self.strikes = 0
        self.failed_at = -1

    def is_out_of_reach(self, now: Reading) -> bool:
        """Tell, by comparing numbers alone, that this cannot be due yet."""
        if not self.has_bounds or self.is_forced:
            return False
        return all(now[clock] < bound for clock, bound in self.bounds.items())

    def look(self, now: Reading) -> bool:
        """Decide by the clocks whether the slot may run at this event, and remember the look.

        Predicates are left for the moment of the call, so that they see what earlier hooks did.
        """
        since = self.since
        if self.guard is not None:
            self.previous = since.get(self.clock)
            if self.previous == now[self.clock] and not self.is_forced:
                return False  # the same step again: hooks run once per step
        due = self._ways_due(now, since) if self.rule is not None else True
        self.remember(now)
        return self.decide(due) if self.is_shared else due

    def _ways_due(self, now: Reading, since: Reading) -> bool:
        assert self.rule is not None
        ways = tuple(way for way in self.rule.alternatives if way.tracks_due(now, since))
        is_certain = any(not way.predicates for way in ways)
        self.pending = () if is_certain else ways
        return bool(ways)

    def set_call(self, call: Callable[[HookContext], Any]) -> None:
        """Replace what is called."""
        self.call = self.untraced_call = call

    def set_traced(self, traced: bool) -> None:
        """Write a line to the log for each run of the hook, or stop doing so."""
        self.call = _traced_call(self) if traced else self.untraced_call

    def take_time(self, spent_ns: int) -> None:
        """Count one timed call."""
        self.timed_calls += 1
        self.timed_ns += spent_ns
        if spent_ns > self.max_ns:
            self.max_ns = spent_ns

    def cost(self) -> HookCost:
        """Return calls and time so far; where calls were sampled, the total is scaled up from the timed ones."""
        is_sampled = self.timed_calls < self.calls
        total_ns = self.timed_ns * self.calls // self.timed_calls if is_sampled and self.timed_calls else self.timed_ns
        return HookCost(self.name, self.event, self.calls, total_ns, self.max_ns, self.timed_calls)

    def earliest(self, clock: str) -> float:
        """Return the bound on ``clock``; infinity when another clock is waited for."""
        return self.bounds.get(clock, INF)


def _traced_call(slot: Slot) -> Callable[[HookContext], Any]:
    def run(ctx: HookContext) -> Any:
        result = slot.untraced_call(ctx)
        if result is not NOT_RUN:
            log.debug("%s runs at %s, step %d", slot.name, slot.event, ctx.step)
        return result

    return run


def conditional_call(slot: Slot, call: Callable[[HookContext], Any]) -> Callable[[HookContext], Any]:
    """Wrap ``call`` so that predicates and ``should_run`` are asked at the moment of the call."""
    guard = slot.guard
    asks_code = guard is not None or (slot.rule is not None and slot.rule.has_predicates)
    decide = slot.decide if asks_code else bool

    def run(ctx: HookContext) -> Any:
        if slot.is_forced:
            slot.is_forced = False
            for request in slot.serves:
                ctx.state.requests.pop(request, None)  # before the call: what it saves must not ask again
            return call(ctx)
        may_run = not slot.pending or any(way.predicates_hold(ctx) for way in slot.pending)
        if may_run and guard is not None:
            ctx.previous_step = None if slot.previous is None else int(slot.previous)
            may_run = bool(guard(ctx))
            ctx.previous_step = None
        return call(ctx) if decide(may_run) else NOT_RUN

    return run
