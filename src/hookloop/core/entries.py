"""Registered hooks: what was added, under which name, with which slots."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hookloop.core.background import BackgroundRunner
from hookloop.core.binding import Handler, Parameters, handlers_of, live_handles
from hookloop.core.costs import HookCost
from hookloop.core.due import Reading, Rule
from hookloop.core.events import Event, EventTable
from hookloop.core.hook import CompositeHook, PeriodicHook
from hookloop.core.instants import Every
from hookloop.core.memory import plain_attributes
from hookloop.core.options import HookOptions
from hookloop.core.ordering import Ranked
from hookloop.core.schedules import Schedule
from hookloop.core.slots import Slot, conditional_call
from hookloop.errors import NameClashError, RegistrationError

if TYPE_CHECKING:
    from hookloop.core.context import HookContext

Plain = Any

# Which set of hooks a hook object belongs to until that run is closed. By identity: hooks need not be hashable.
_owners: dict[int, weakref.ref[object]] = {}


@dataclass(slots=True)
class Entry:
    """One registered hook."""

    hook: object
    name: str
    options: HookOptions
    root: object
    """What the user registered: the hook itself, or the CompositeHook it is a child of."""
    group: str | None = None
    slots: dict[str, Slot] = field(default_factory=dict[str, Slot])
    needs: frozenset[str] = frozenset()
    """The values it declares to need, and those its methods take as parameters."""
    baseline: dict[str, Plain] = field(default_factory=dict[str, Plain])
    is_enabled: bool = True
    is_started: bool = False
    runner: BackgroundRunner | None = None
    config: dict[str, Plain] | None = None
    """The configuration it was built from, if it was."""
    given: Mapping[str, object] = field(default_factory=dict[str, object])
    """The options given at registration, as they were written."""
    over_budget: str | None = None

    @property
    def label(self) -> str:
        """The hook's class, or a function's name."""
        return label_of(self.hook)

    def costs(self) -> list[HookCost]:
        """Return calls and time per event."""
        return [slot.cost() for slot in self.slots.values()]

    def remember(self, reading: Reading) -> None:
        """Let all schedules count from this reading on."""
        for slot in self.slots.values():
            slot.remember(reading)

    def ranked(self) -> Ranked:
        """Return what ordering needs to know."""
        groups = () if self.group is None else (self.group,)
        return Ranked(self.name, self.options, (self.name, self.label, *groups), self.needs)


def label_of(hook: object) -> str:
    """Return what a hook is called when nobody named it: its class, or a function's name."""
    return getattr(hook, "__name__", type(hook).__name__).strip("<>")


def expanded(hook: object, name: str, options: HookOptions) -> Iterator[tuple[object, str, HookOptions | None]]:
    """Yield the hooks that registering ``hook`` means: itself, or the children of a group under its name."""
    if not isinstance(hook, CompositeHook):
        yield hook, name, options
        return
    taken: set[str] = set()
    for child in hook.children:
        own = getattr(child, "name", None)
        label = own if isinstance(own, str) else label_of(child)
        unique = free_name(f"{name}/{label}", taken, is_chosen=False)
        taken.add(unique)
        if isinstance(child, CompositeHook):
            yield from expanded(child, unique, options)
        else:
            yield child, unique, None


def free_name(name: str, taken: Collection[str], *, is_chosen: bool) -> str:
    """Return ``name``, numbered if a hook of the same class has it; a name somebody chose must be free."""
    if name not in taken:
        return name
    if is_chosen:
        raise NameClashError(
            f"There is a hook named {name!r} already, and a hook's state is saved under its name; "
            "give one of them another with name='...'."
        )
    return next(f"{name}_{number}" for number in range(2, len(taken) + 3) if f"{name}_{number}" not in taken)


def claim(hook: object, owner: object) -> None:
    """Make a hook belong to one run; functions hold no state and may belong to many."""
    if hasattr(hook, "__code__"):
        return
    holder = _owners.get(id(hook), lambda: None)()
    if holder is not None:
        whose = "this run" if holder is owner else "another run"
        raise RegistrationError(
            f"The hook {type(hook).__name__} is registered with {whose} already; make a second instance, "
            "or close that run first."
        )
    _owners[id(hook)] = weakref.ref(owner)


def is_claimed_by(hook: object, owner: object) -> bool:
    """Tell whether a hook belongs to ``owner`` now."""
    return _owners.get(id(hook), lambda: None)() is owner


def release(hook: object) -> None:
    """Let a hook be registered with another run."""
    _owners.pop(id(hook), None)


@dataclass(frozen=True, slots=True)
class SlotMaker:
    """Turns the handlers of a hook into slots."""

    events: EventTable
    parameters: Parameters
    default_event: str
    decide: Callable[[bool], bool]
    """Main's answer on every rank."""
    notify: Callable[[], None]

    def fill(self, entry: Entry) -> None:
        """Find the entry's handlers and give it a slot for each."""
        options = entry.options
        on = options.on or self._event_by_name(entry.hook) or self.default_event
        handlers = handlers_of(entry.hook, on, self.events, self.parameters, is_chosen=options.on is not None)
        self._refuse_idle_schedules(entry, handlers)
        if options.background:
            self._refuse_live_handles(entry, handlers)
            entry.runner = BackgroundRunner(entry.name, self.notify)
        for event_name, handler in handlers.items():
            entry.slots[event_name] = self._slot(entry, self.events.find(event_name), handler)
        asked = {name for handler in handlers.values() for name in handler.asks}
        entry.needs = frozenset({*options.needs, *(asked & set(self.parameters.values))})
        entry.baseline = plain_attributes(entry.hook)

    def _slot(self, entry: Entry, event: Event, handler: Handler) -> Slot:
        schedule, guard = self._condition(entry, event, handler)
        rule = Rule(schedule, event.clock) if schedule is not None and event.is_scheduled else None
        if rule is not None and rule.is_always:
            rule = None
        slot = Slot(
            entry.name,
            event.name,
            handler.call,
            clock=event.clock,
            rule=rule,
            guard=guard,
            serves=entry.options.serves,
            decide=self.decide if entry.options.ranks == "all" else bool,
        )
        if entry.options.background and not event.is_isolated:
            slot.set_call(_background_call(entry, slot, handler))
        if slot.is_conditional:
            slot.set_call(conditional_call(slot, slot.call))
        return slot

    def _condition(
        self, entry: Entry, event: Event, handler: Handler
    ) -> tuple[Schedule | None, Callable[[HookContext], Any] | None]:
        schedule = entry.options.schedules.get(event.name, entry.options.schedule)
        hook, guard = entry.hook, handler.should_run
        if guard is not None and isinstance(hook, PeriodicHook) and type(hook).should_run is PeriodicHook.should_run:
            # The seeds' periodic hook can be looked ahead, as long as nobody changed how it decides.
            return schedule or Every(hook.frequency, start=hook.start_step), None
        return schedule, guard

    def _event_by_name(self, hook: object) -> str | None:
        name = getattr(hook, "__name__", "")
        return self.events.find(name[3:]).name if name.startswith("on_") and name[3:] in self.events else None

    def _refuse_idle_schedules(self, entry: Entry, handlers: Collection[str]) -> None:
        for event in entry.options.schedules:
            if event not in handlers:
                raise RegistrationError(
                    f"{entry.name!r} has a schedule for {event!r} but no method on_{event}; "
                    f"it handles {', '.join(handlers)}."
                )
        has_effect = any(self.events.find(event).is_scheduled for event in handlers)
        if entry.options.schedule is not None and not has_effect:
            raise RegistrationError(
                f"{entry.name!r} has the schedule '{entry.options.schedule}', but it only handles "
                f"{', '.join(handlers)}, which every hook sees whenever it happens; drop the schedule."
            )

    def _refuse_live_handles(self, entry: Entry, handlers: dict[str, Handler]) -> None:
        for handler in handlers.values():
            live = [name for name in live_handles(handler.asks) if name not in entry.options.needs]
            if live:
                raise RegistrationError(
                    f"{entry.name!r} runs in the background, where {live[0]!r} would change under it; "
                    f"declare needs=({live[0]!r},) to be given a copy."
                )


def _background_call(entry: Entry, slot: Slot, handler: Handler) -> Callable[[HookContext], None]:
    def submit(ctx: HookContext) -> None:
        assert entry.runner is not None
        entry.runner.submit(slot.event, handler.call, ctx.snapshot(entry.options.needs))

    return submit
