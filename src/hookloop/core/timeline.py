"""A dry run: what would fire when, in which order, and why, before any compute."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hookloop.core.clocks import EPOCHS
from hookloop.core.due import Reading, Rule
from hookloop.core.events import EventTable

if TYPE_CHECKING:
    from hookloop.core.entries import Entry
    from hookloop.core.slots import Slot

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
        width = max((len(each.hook) for each in (*self.firings, *self.standing)), default=4)
        lines = [f"{'epoch':>9}  {'event':<18} {'hook':<{width}}  why"]
        lines += [f"{_short(f.epochs):>9}  {f.event:<18} {f.hook:<{width}}  {f.why}" for f in self.firings]
        lines += [f"{'':>9}  {s.event:<18} {s.hook:<{width}}  {s.why}" for s in self.standing]
        return "\n".join(lines)


def foresee(
    entries: Sequence[Entry],
    events: EventTable,
    readings: Reading,
    epochs: int,
    per_epoch: Mapping[str, float],
) -> Timeline:
    """Work out the calls of the coming ``epochs``, given how far each clock moves in one of them."""
    rates = {EPOCHS: 1.0, **per_epoch}
    place_of = {name: place for place, name in enumerate(events.names)}
    found: list[tuple[tuple[float, int, int], Firing]] = []
    standing: list[Standing] = []
    for order, slot in enumerate(_scheduled_slots(entries, events)):
        why = _why_unplaced(slot, rates)
        if why is not None:
            standing.append(Standing(slot.event, slot.name, why))
            continue
        assert slot.rule is not None
        at_epoch_ends = events.find(slot.event).clock == EPOCHS
        for position, reason in _walk(slot.rule, slot.since, readings, rates, epochs):
            at = float(math.ceil(position)) if at_epoch_ends else position
            firing = Firing(readings[EPOCHS] + at, slot.event, slot.name, reason)
            found.append(((at, place_of[slot.event], order), firing))
    return Timeline(tuple(firing for _, firing in sorted(found, key=lambda pair: pair[0])), tuple(standing))


def _scheduled_slots(entries: Iterable[Entry], events: EventTable) -> Iterator[Slot]:
    for entry in entries:
        if entry.is_enabled:
            yield from (slot for slot in entry.slots.values() if events.find(slot.event).is_scheduled)


def _why_unplaced(slot: Slot, rates: Mapping[str, float]) -> str | None:
    if slot.guard is not None:
        return "each time its should_run says so"
    if slot.rule is None:
        return "each time"
    if slot.rule.has_predicates:
        return f"'{slot.rule.schedule}': its predicate decides during the run"
    unknown = [clock for clock in slot.rule.clocks if clock not in rates]
    if unknown:
        return f"'{slot.rule.schedule}': say how far it moves, per_epoch={{{unknown[0]!r}: ...}}, to place it"
    return None


def _walk(
    rule: Rule, since: Reading, readings: Reading, rates: Mapping[str, float], epochs: int
) -> Iterator[tuple[float, str]]:
    """Yield the positions, in epochs from now, at which the rule is due, with the reason."""
    seen = {clock: since.get(clock, -1 if readings[clock] == 0 else readings[clock]) for clock in rule.clocks}
    position = 0.0
    for _ in range(MOST_FIRINGS):
        bounds = rule.bounds(seen) or {}
        ahead = {clock: (tick - readings[clock]) / rates[clock] for clock, tick in bounds.items() if rates[clock] > 0}
        if not ahead:
            return
        clock = min(ahead, key=lambda name: ahead[name])
        position = max(position, ahead[clock])
        if position > epochs:
            return
        now = {name: readings[name] + math.floor(position * rates[name]) for name in rule.clocks}
        now[clock] = max(bounds[clock], seen[clock])
        if rule.is_due(now, seen):
            yield position, f"'{rule.schedule}': {clock} reach {_short(now[clock])}"
        seen = now if now != seen else {name: value + 1 for name, value in now.items()}


def _short(number: float) -> str:
    return str(int(number)) if number == int(number) else f"{number:.3f}"
