"""A dry run: what would fire when, in which order, and why, before any compute."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hookloop.core.clocks import EPOCHS
from hookloop.core.due import Reading
from hookloop.core.events import EventTable
from hookloop.core.schedules import BEFORE_START

if TYPE_CHECKING:
    from hookloop.core.entries import Entry
    from hookloop.core.slots import Slot

_BEFORE_WORK = ("epoch_start", "rollout_start")
_AFTER_EPOCH = ("epoch_end",)
_BEFORE_COUNT = ("minibatch_start", "gradients")

MOST_FIRINGS = 10_000  # per hook and event; a dry run is for reading


@dataclass(frozen=True, slots=True)
class Firing:
    """One call that would happen."""

    epochs: float
    event: str
    hook: str
    why: str


@dataclass(frozen=True, slots=True)
class Standing:
    """A hook whose calls cannot be placed one by one, with the reason."""

    event: str
    hook: str
    why: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """The calls of the coming epochs in order, and the hooks that cannot be placed."""

    firings: tuple[Firing, ...]
    standing: tuple[Standing, ...]

    def __iter__(self) -> Iterator[Firing]:
        return iter(self.firings)

    def __str__(self) -> str:
        width = max((len(each.hook) for each in (*self.firings, *self.standing)), default=0)
        width = max(width, len("hook"))
        lines = [f"{'epoch':>9}  {'event':<18} {'hook':<{width}}  why"]
        lines += [f"{_short(f.epochs):>9}  {f.event:<18} {f.hook:<{width}}  {f.why}" for f in self.firings]
        lines += [f"{'':>9}  {s.event:<18} {s.hook:<{width}}  {s.why}" for s in self.standing]
        return "\n".join(lines)


def foresee(
    entries: Sequence[Entry], events: EventTable, readings: Reading, epochs: int, per_epoch: Mapping[str, float]
) -> Timeline:
    """Work out the calls of the coming ``epochs``, given how far each clock moves in one of them."""
    rates = {EPOCHS: 1.0, **per_epoch}
    place_of = {name: place for place, name in enumerate(events.names)}
    found: list[tuple[tuple[float, ...], Firing]] = []
    standing: list[Standing] = []
    for order, slot in enumerate(_scheduled_slots(entries, events)):
        own_clock = events.find(slot.event).clock
        why = _why_unplaced(slot, own_clock, rates)
        if why is not None:
            standing.append(Standing(slot.event, slot.name, why))
            continue
        assert slot.rule is not None
        seen = {clock: slot.since.get(clock, BEFORE_START) for clock in slot.rule.clocks}
        foreseen = _by_epoch if own_clock == EPOCHS else _by_tick
        for epoch, position, reason in foreseen(slot, own_clock, seen, readings, rates, epochs):
            firing = Firing(readings[EPOCHS] + position, slot.event, slot.name, reason)
            found.append(((epoch, place_of[slot.event], position, order), firing))
    return Timeline(tuple(firing for _, firing in sorted(found, key=lambda pair: pair[0])), tuple(standing))


def _scheduled_slots(entries: Iterable[Entry], events: EventTable) -> Iterator[Slot]:
    for entry in entries:
        if entry.is_enabled:
            yield from (slot for slot in entry.slots.values() if events.find(slot.event).is_scheduled)


def _why_unplaced(slot: Slot, own_clock: str, rates: Mapping[str, float]) -> str | None:
    if slot.guard is not None:
        return "each time its should_run says so"
    if slot.rule is None:
        return "each time"
    if slot.rule.has_predicates:
        return f"'{slot.rule.schedule}': its predicate decides during the run"
    unknown = [clock for clock in slot.rule.clocks if clock not in rates]
    if unknown:
        return f"'{slot.rule.schedule}': say how far it moves, per_epoch={{{unknown[0]!r}: ...}}, to place it"
    if own_clock != EPOCHS and slot.rule.clocks != (own_clock,):
        return f"'{slot.rule.schedule}': looked at each time"
    return None


def _by_epoch(
    slot: Slot, _own_clock: str, seen: Reading, readings: Reading, rates: Mapping[str, float], epochs: int
) -> Iterator[tuple[int, float, str]]:
    """Yield the calls at an event that fires once per epoch: its number, the epochs completed, the reason."""
    assert slot.rule is not None
    for epoch in range(epochs):
        # Counts are of completed work: an epoch counts once it has ended, its steps once they are collected.
        epochs_done = epoch + (slot.event in _AFTER_EPOCH)
        work_done = epoch + (slot.event not in _BEFORE_WORK)
        now = {
            clock: readings[clock] + (epochs_done if clock == EPOCHS else math.floor(work_done * rates[clock]))
            for clock in slot.rule.clocks
        }
        if slot.rule.is_due(now, seen):
            reached = ", ".join(f"{clock} at {_short(value)}" for clock, value in now.items())
            yield epoch, float(epochs_done), f"'{slot.rule.schedule}': {reached}"
        seen = now


def _by_tick(
    slot: Slot, own_clock: str, seen: Reading, readings: Reading, rates: Mapping[str, float], epochs: int
) -> Iterator[tuple[int, float, str]]:
    """Yield the calls at an event that counts a clock of its own, tick by tick, skipping what is out of reach."""
    assert slot.rule is not None
    start, rate = readings[own_clock], rates[own_clock]
    is_before = slot.event in _BEFORE_COUNT
    tick, last = start + (0 if is_before else 1), start + epochs * rate - (1 if is_before else 0)
    for _ in range(MOST_FIRINGS):
        if tick > last:
            return
        now = {own_clock: tick}
        if slot.rule.is_due(now, seen):
            position = (tick - start) / rate
            epoch = math.floor(position) if is_before else math.ceil(position) - 1
            yield epoch, position, f"'{slot.rule.schedule}': {own_clock} at {_short(tick)}"
        seen = now
        tick = max(tick + 1, math.ceil(min((slot.rule.bounds(seen) or now).get(own_clock, last + 1), last + 1)))


def _short(number: float) -> str:
    return str(int(number)) if number == int(number) else f"{number:.3f}"
