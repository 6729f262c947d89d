"""What happens when an event fires: a precomputed tuple of calls, behind a gate that looks ahead.

No code is generated. For each event one of four small functions is chosen when the set of hooks changes:
nobody listens; everybody listens always; all conditions lie on one counter, so that one comparison tells
that nothing is due; and the general case.
"""

from __future__ import annotations

import logging
from bisect import bisect
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Protocol

from hookloop.core.clocks import SECONDS
from hookloop.core.context import HookContext
from hookloop.core.events import Event
from hookloop.core.schedules import INF
from hookloop.core.slots import Slot

log = logging.getLogger("hookloop.hooks")

Emit = Callable[[HookContext], None]


class Conduct(Protocol):
    """What the dispatcher does with results, failures and time."""

    time_ns: Callable[[], int]

    def settle(self, slot: Slot, result: object, ctx: HookContext) -> None:
        """Take what a hook returned."""
        ...

    def fails(self, slot: Slot, error: Exception, ctx: HookContext) -> bool:
        """Apply the failure policy; tell whether to raise."""
        ...


class Emitters:
    """One callable per event, replaced as a whole when hooks change: ``hooks.emit.step_end(ctx)``."""

    restore: Emit
    training_start: Emit
    epoch_start: Emit
    rollout_start: Emit
    step_end: Emit
    episode_end: Emit
    rollout_end: Emit
    train_phase_start: Emit
    minibatch_start: Emit
    gradients: Emit
    optimizer_step: Emit
    minibatch_end: Emit
    train_phase_end: Emit
    evaluation_start: Emit
    evaluation_end: Emit
    epoch_end: Emit
    checkpoint_saved: Emit
    policy_updated: Emit
    lesson_changed: Emit
    stop_requested: Emit
    hook_error: Emit
    exception: Emit
    training_end: Emit
    close: Emit


class Gate:
    """The conditions of one event: what must be reached before any of its hooks can be due."""

    __slots__ = ("agenda", "due", "order", "slots")

    def __init__(self, slots: Sequence[Slot]) -> None:
        self.slots = tuple(slots)
        self.due = -INF
        self.agenda: list[Slot] | None = None
        self.order = {slot.name: slot.order for slot in slots}

    def one_counter(self) -> str | None:
        """Return the counter all conditions lie on; None if there is no such one."""
        conditional = [slot for slot in self.slots if slot.is_conditional]
        clocks = {clock for slot in conditional for clock in slot.clocks}
        is_simple = all(slot.has_bounds and not slot.serves for slot in conditional)
        if not is_simple or len(clocks) != 1 or SECONDS in clocks:
            return None
        return next(iter(clocks))

    def admit(self, ctx: HookContext) -> list[Slot]:
        """Decide who runs at this event, all of them before the first runs, and remember the looks.

        A checkpoint written by one of these hooks therefore holds the memory of all of them.
        """
        now = ctx.readings
        admitted: list[Slot] = []
        for slot in self.slots:
            if not slot.is_conditional or (not slot.is_out_of_reach(now) and (slot.look(now) or slot.is_forced)):
                admitted.append(slot)
        return admitted

    def force(self, slot: Slot, running_hook: str) -> None:
        """Make a slot due once: still in the running event if its turn is yet to come, else at the next."""
        slot.is_forced = True
        self.due = -INF
        if self.agenda is None or slot in self.agenda or slot.order <= self.order.get(running_hook, -1):
            return
        self.agenda.insert(bisect([each.order for each in self.agenda], slot.order), slot)


def silent(_ctx: HookContext) -> None:
    """Do nothing: nobody listens to this event."""


def emitter(event: Event, slots: Sequence[Slot], conduct: Conduct) -> tuple[Emit, Gate | None]:
    """Return the function that fires ``event`` for these slots, and its gate where there is one."""
    if not slots:
        return silent, None
    if event.is_isolated:
        return _always(_isolated_runner(event, conduct), tuple(slots)), None
    for slot in slots:
        slot.set_traced(log.isEnabledFor(logging.DEBUG))
    run = _timed_runner(event, conduct)
    run_always = _sampled(run, _plain_runner(event, conduct))
    always = tuple(slot for slot in slots if not slot.is_conditional)
    if len(always) == len(slots):
        return _always(run_always, always), None
    gate = Gate(slots)
    counter = gate.one_counter()
    if counter is None:
        return _general(run, gate), gate
    return _behind_one_counter(run, run_always, always, gate, counter), gate


Run = Callable[[HookContext, Sequence[Slot]], None]

EXACT_FIRINGS = 1024
# Uneven, so that no habit of a hook (work on every 10th call) falls in step with them; 8 on average.
UNTIMED_FIRINGS = (7, 3, 12, 8, 1, 14, 9, 5, 11, 13, 2, 8, 6, 15, 4, 10)


def _always(run: Run, slots: Sequence[Slot]) -> Emit:
    def fire(ctx: HookContext) -> None:
        run(ctx, slots)

    return fire


def _behind_one_counter(run: Run, run_always: Run, always: Sequence[Slot], gate: Gate, counter: str) -> Emit:
    conditional = [slot for slot in gate.slots if slot.is_conditional]

    def next_due() -> float:
        return min(slot.earliest(counter) for slot in conditional)

    def fire(ctx: HookContext) -> None:
        if ctx.readings[counter] < gate.due:
            if always:
                run_always(ctx, always)
            return
        admitted = gate.admit(ctx)
        gate.due = next_due()
        if admitted:
            run(ctx, admitted)

    gate.due = next_due()
    return fire


def _general(run: Run, gate: Gate) -> Emit:
    reads_seconds = any(SECONDS in slot.clocks for slot in gate.slots)

    def fire(ctx: HookContext) -> None:
        if reads_seconds:
            ctx.state.clocks.refresh_seconds()
        outer, gate.agenda = gate.agenda, gate.admit(ctx)
        try:
            run(ctx, gate.agenda)
        finally:
            gate.agenda = outer

    return fire


def _sampled(timed: Run, plain: Run) -> Run:
    """Time the first thousand firings, then some: reading the clock costs more than calling a small hook."""
    exact_left = EXACT_FIRINGS
    untimed_left = 0
    gaps = cycle(UNTIMED_FIRINGS)

    def run(ctx: HookContext, slots: Sequence[Slot]) -> None:
        nonlocal exact_left, untimed_left
        if untimed_left:
            untimed_left -= 1
            plain(ctx, slots)
            return
        if exact_left:
            exact_left -= 1
        else:
            untimed_left = next(gaps)
        timed(ctx, slots)

    return run


def _plain_runner(event: Event, conduct: Conduct) -> Run:
    name, clock = event.name, event.clock
    settle, fails = conduct.settle, conduct.fails

    def run(ctx: HookContext, slots: Sequence[Slot]) -> None:
        outer = ctx.event, ctx.hook, ctx.step_clock  # an event may fire inside another one's hook
        ctx.event, ctx.step_clock = name, clock
        try:
            for slot in slots:
                ctx.hook = slot.name
                slot.calls += 1
                try:
                    result = slot.call(ctx)
                    if result is not None:
                        settle(slot, result, ctx)
                except Exception as error:
                    if fails(slot, error, ctx):
                        raise
        finally:
            ctx.event, ctx.hook, ctx.step_clock = outer

    return run


def _timed_runner(event: Event, conduct: Conduct) -> Run:
    name, clock, time_ns = event.name, event.clock, conduct.time_ns
    settle, fails = conduct.settle, conduct.fails

    def run(ctx: HookContext, slots: Sequence[Slot]) -> None:
        outer = ctx.event, ctx.hook, ctx.step_clock
        ctx.event, ctx.step_clock = name, clock
        try:
            begun = time_ns()
            for slot in slots:
                ctx.hook = slot.name
                slot.calls += 1
                try:
                    result = slot.call(ctx)
                    if result is not None:
                        settle(slot, result, ctx)
                except Exception as error:
                    if fails(slot, error, ctx):
                        raise
                # Fence posts: the end of one call is the beginning of the next, one clock read per hook.
                ended = time_ns()
                slot.take_time(ended - begun)
                begun = ended
        finally:
            ctx.event, ctx.hook, ctx.step_clock = outer

    return run


def _isolated_runner(event: Event, conduct: Conduct) -> Run:
    run_one = _timed_runner(event, conduct)

    def run(ctx: HookContext, slots: Sequence[Slot]) -> None:
        first: Exception | None = None
        for slot in reversed(slots) if event.is_reversed else slots:
            try:
                run_one(ctx, (slot,))
            except Exception as error:  # noqa: BLE001  # the dispatcher: every handler runs, then it is raised
                if first is None:
                    first = error
                else:
                    first.add_note(f"and hook {slot.name!r} failed too: {error!r}")
        if first is not None:
            raise first

    return run
