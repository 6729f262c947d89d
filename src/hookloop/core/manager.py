"""The set of hooks of one run: what a user adds hooks to, and a loop fires events on."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

from hookloop.core.clocks import BUILT_IN_CLOCKS, ENV_STEPS, canonical_clock
from hookloop.core.context import HookContext
from hookloop.core.costs import HookCost, log, over_budget
from hookloop.core.entries import Entry
from hookloop.core.events import Event, EventTable
from hookloop.core.hook_config import add_from_config, to_config
from hookloop.core.memory import load_hooks, save_hooks
from hookloop.core.options import ON_ERROR
from hookloop.core.ranks import Ranks, SingleProcess
from hookloop.core.roster import Roster
from hookloop.core.switchboard import Switchboard
from hookloop.core.timeline import Timeline, foresee
from hookloop.errors import OrderError, RegistrationError, UnknownNameError

Plain = Any


class HookManager:
    """All hooks of one run. Add hooks in any dialect; fire events with ``hooks.emit.<event>(ctx)``.

    Changes take effect whole, at the next event. Every call is guarded and timed.

    Args:
        default_event: The event of ``run`` methods and of functions that do not say ``on``.
        step_clock: What ``step_end`` is counted on; a workload whose steps are none of the environment has its own.
        on_error: The failure policy of hooks that do not declare one.
        strict: Raise every failure, whatever the policies say; for tests.
        ranks: The processes of the run; hooks of ``ranks="main"`` are absent from all others.
        time_ns: The stopwatch; a manual one in tests.
    """

    def __init__(
        self,
        *,
        default_event: str = "step_end",
        step_clock: str = ENV_STEPS,
        on_error: str = "raise",
        strict: bool = False,
        ranks: Ranks | None = None,
        time_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        if on_error not in ON_ERROR:
            raise RegistrationError(f"on_error must be one of {', '.join(map(repr, ON_ERROR))}, got {on_error!r}.")
        self.events = EventTable(step_clock)
        self.ranks: Ranks = ranks if ranks is not None else SingleProcess()
        self.time_ns = time_ns
        self.default_event = self.events.find(default_event, where="to be the default").name
        self._roster = Roster(self.events, self.default_event, self.ranks.broadcast, self._announce)
        if step_clock not in BUILT_IN_CLOCKS:
            self._roster.clocks.add(step_clock)
        self._board = Switchboard(self._roster, self.ranks, time_ns, on_error=on_error, strict=strict)
        self.emit = self._board.emit
        self._context: HookContext | None = None
        self._begun_ns = time_ns()

    # Registration

    def add(self, hook: object, **options: object) -> str:
        """Register a hook, with options that win over those it declares, and return its unique name."""
        return self._take_in(hook, options, None)

    def add_configured(self, hook: object, config: dict[str, Plain], **options: object) -> str:
        """Register a hook that was built from ``config``, which ``to_config`` then gives back."""
        return self._take_in(hook, options, config)

    def register_hook(self, hook: object) -> None:
        """Register a hook with the options it declares itself."""
        self.add(hook)

    def remove(self, hook: object) -> None:
        """Remove a hook, given itself or its name; if the run has started, it is closed first."""
        root = self._roster.root_of(hook)
        if root is None:
            name = hook if isinstance(hook, str) else type(hook).__name__
            raise UnknownNameError("hook", name, self._roster.entries, where="to remove")
        for entry in self._roster.of_root(root):
            self._board.deliver(entry, self.context, wait=True)
            if entry.is_started:
                self._board.fire_alone("close", entry, self.context)
            if entry.runner is not None:
                entry.runner.close()
        self._roster.strike(root)
        self._board.change()

    def unregister_hook(self, hook: object) -> bool:
        """Remove a hook and tell whether it was there."""
        if self._roster.root_of(hook) is None:
            return False
        self.remove(hook)
        return True

    def clear_hooks(self) -> None:
        """Remove all hooks."""
        for root in self.get_hooks():
            self.remove(root)

    def get_hooks(self) -> list[object]:
        """Return the registered hooks, as they were given, in the order of registration: a copy."""
        return list(self._roster.roots)

    @contextmanager
    def added(self, hook: object, **options: object) -> Generator[str]:
        """Register a hook for the length of a ``with`` block."""
        name = self.add(hook, **options)
        try:
            yield name
        finally:
            self.unregister_hook(hook)

    def enable(self, name: str, enabled: bool = True) -> None:
        """Switch a hook on or off, from the next event on."""
        entry = self.entry(name)
        entry.is_enabled = enabled
        for slot in entry.slots.values():
            slot.forgive()
        self._board.change()

    def __len__(self) -> int:
        return len(self._roster.roots)

    def __contains__(self, hook: object) -> bool:
        return self._roster.root_of(hook) is not None

    # What a workload declares

    def event(self, name: str, *, clock: str = "epochs", fires: str = "", is_scheduled: bool = True) -> None:
        """Declare an event of the workload's own, with a counter if need be; hooks then write ``on_<name>``."""
        self._roster.clocks.add(clock)
        self.context.state.clocks.declare(clock)
        self.events.declare(Event(name, fires or "when the workload says so", clock, is_scheduled=is_scheduled))
        self._board.change()

    def offer(self, *names: str) -> None:
        """Declare values the workload can compute; hooks may then need them, or take them as parameters."""
        self._roster.offers.update(names)

    def provide(self, name: str, service: object) -> None:
        """Hand a service (a tracker, a client) to hooks that take a parameter of that name."""
        self._roster.services.add(name)
        self.context.services[name] = service

    def wants(self, name: str, **advance: float) -> bool:
        """Tell whether a hook that needs the value ``name`` can be due at its next event.

        ``advance`` says how far clocks will have moved by then: ``hooks.wants("grad_norm", minibatches=1)``.
        Ask before an expensive value is computed; opaque predicates count as due.
        """
        now = dict(self.context.readings)
        for clock, amount in advance.items():
            now[canonical_clock(clock, frozenset(self._roster.clocks))] += amount
        return any(
            not slot.is_out_of_reach(now)
            for entry in self._roster.entries.values()
            if name in entry.needs and self._board.is_live(entry)
            for slot in entry.slots.values()
            if self.events.find(slot.event).is_scheduled
        )

    # Firing

    @property
    def context(self) -> HookContext:
        """The context of the run these hooks belong to; an empty one until a loop brings its own."""
        if self._context is None:
            self.bind(HookContext())
        assert self._context is not None
        return self._context

    def bind(self, context: HookContext) -> None:
        """Tie this set of hooks to the context of a run."""
        if self._context is not None and self._context is not context:
            context.services.update(self._context.services)
        self._context = context
        context.attach(self)
        for clock in self._roster.clocks:
            context.state.clocks.declare(clock)

    def start(self, context: HookContext) -> None:
        """Begin a run: check that all ranks have the same plan, then fire ``restore`` and ``training_start``."""
        self.bind(context)
        self._roster.take_up()
        self._begun_ns = self.time_ns()
        self._require_same_plan()
        self._board.has_started = True
        for entry in self._roster.entries.values():
            entry.is_started = True
        self.emit.restore(context)
        self.emit.training_start(context)

    def end(self, context: HookContext, error: BaseException | None = None) -> None:
        """Tell all hooks how a run ended: ``exception`` if it failed, then ``training_end``, each isolated."""
        if error is not None:
            self._board.fire_despite("exception", context, error)
        self.join_despite(context, error)
        self._board.fire_despite("training_end", context, error)

    def close(self, context: HookContext, error: BaseException | None = None) -> None:
        """Fire ``close``, end background threads, and let the hooks go; they may then join another run."""
        try:
            self.join_despite(context, error)
            self._board.fire_despite("close", context, error)
        finally:
            for entry in self._roster.entries.values():
                if entry.runner is not None:
                    entry.runner.close()
            self._board.has_started = False
            self._roster.let_go()

    def fire(self, event: str, ctx: HookContext) -> None:
        """Fire an event by name; for those that a workload declared."""
        getattr(self.emit, self.events.find(event).name)(ctx)

    def run_hooks(self, context: HookContext) -> dict[str, Plain]:
        """Fire the default event on a context of your own and return the metrics, under the hooks' names."""
        event = self.events.find(self.default_event)
        vars(context.state.clocks)[event.clock] = context.step
        is_first_look = self._context is None
        if self._context is not context:
            self.bind(context)
        if is_first_look:
            # Nobody has looked before: only this very step counts, not all that may have gone before it.
            for entry in self._roster.entries.values():
                for slot in entry.slots.values():
                    slot.since = {clock: context.readings[clock] - 1 for clock in slot.clocks}
                    slot.look_ahead()
            self._board.change()
        self._board.results = {}
        self.fire(self.default_event, context)
        return self._board.results

    def serve_request(self, what: str) -> None:
        """Make the hooks that serve ``what`` due once; a request that nobody serves is dropped with a warning."""
        waiting = [
            (gate, slot)
            for gate in self._board.gates(self.context)
            for slot in gate.slots
            if what in slot.serves and slot.is_conditional
        ]
        for gate, slot in waiting:
            gate.force(slot, self.context.hook)
        if not waiting:
            asker = self.context.state.requests.pop(what, "")
            if not any(what in entry.options.serves for entry in self._roster.entries.values()):
                log.warning("%r asked for %r, which no hook serves", asker, what)

    def note_failure(self, error: Exception) -> None:
        """Count and tell of an error that the running hook has dealt with itself."""
        self._board.note_failure(error, self.context)

    def join(self, ctx: HookContext) -> None:
        """Wait for all background hooks and take their results; before a checkpoint and at the end."""
        for entry in self._roster.entries.values():
            self._board.deliver(entry, ctx, wait=True)

    def join_despite(self, ctx: HookContext, error: BaseException | None) -> None:
        """Join, but let an error that is under way be the one that is raised."""
        for entry in self._roster.entries.values():
            self._board.despite(error, lambda entry=entry: self._board.deliver(entry, ctx, wait=True))

    # Looking

    def order(self) -> list[str]:
        """Return the names of the hooks in running order."""
        return [entry.name for entry in self._roster.in_order(self.context.readings)]

    def entry(self, name: str) -> Entry:
        """Return what is known of a registered hook."""
        if name not in self._roster.entries:
            raise UnknownNameError("hook", name, self._roster.entries)
        return self._roster.entries[name]

    def entries(self) -> list[Entry]:
        """Return all registered hooks in the order of registration, the children of groups one by one."""
        return list(self._roster.entries.values())

    def costs(self) -> list[HookCost]:
        """Return calls and time per hook and event, in this process."""
        return [cost for entry in self._roster.entries.values() for cost in entry.costs()]

    @property
    def has_reporter(self) -> bool:
        """Whether a hook takes the logged metrics; without one they are dropped after each epoch."""
        return any(entry.options.stage == "report" for entry in self._roster.entries.values())

    def timeline(self, epochs: int, per_epoch: Mapping[str, float] | None = None) -> Timeline:
        """Return what would fire in the next epochs, in which order and why, without running anything.

        ``per_epoch`` says how far the other clocks move in one epoch, for example ``{"env_steps": 1024}``.
        """
        in_order = self._roster.in_order(self.context.readings)
        known = frozenset(self._roster.clocks)
        rates = {canonical_clock(clock, known): rate for clock, rate in (per_epoch or {}).items()}
        return foresee(in_order, self.events, self.context.readings, epochs, rates)

    def check_budgets(self) -> dict[str, str]:
        """Warn once of each hook that takes more than its budget; return all that do, with words."""
        elapsed_ns = self.time_ns() - self._begun_ns
        found: dict[str, str] = {}
        for entry in self._roster.entries.values():
            if entry.options.budget is None:
                continue
            excess = over_budget(entry.options.budget, entry.costs(), elapsed_ns)
            if excess is not None:
                found[entry.name] = excess
                if entry.over_budget is None:
                    log.warning("hook %r %s", entry.name, excess)
            entry.over_budget = excess
        return found

    # Configuration

    def add_config(self, items: object) -> list[str]:
        """Build and add the hooks that a configuration lists, and return their names."""
        return add_from_config(self, items)

    def to_config(self) -> list[dict[str, Plain]]:
        """Return the configuration that recreates these hooks, schedules and overrides included."""
        return to_config(self.entries())

    # Memory

    def state_dict(self) -> dict[str, Plain]:
        """Return the state of every hook and of its schedules, by name; waits for background hooks."""
        self.join(self.context)
        return save_hooks(self._roster.entries.values())

    def load_state_dict(self, saved: Mapping[str, Plain], *, strict: bool = True) -> list[str]:
        """Restore hooks by name and return the names the save does not hold (none when strict)."""
        missing = load_hooks(self._roster.entries, saved, strict=strict)
        for name in missing:
            self._roster.entries[name].remember(self.context.readings)  # new since the save: no catching up
        for entry in self._roster.entries.values():
            for slot in entry.slots.values():
                slot.count_new_clocks_from(self.context.readings)
        self._board.change()
        for request in list(self.context.state.requests):
            self.serve_request(request)
        return missing

    def _take_in(self, hook: object, options: Mapping[str, object], config: dict[str, Plain] | None) -> str:
        name, made = self._roster.register(hook, options, config)
        if self._board.has_started:
            for entry in made:
                entry.remember(self.context.readings)  # joined late: no catching up
        self._board.change()
        return name

    def _announce(self) -> None:
        self._board.announce()

    def _require_same_plan(self) -> None:
        plans = self.ranks.gather(tuple(self.order()))
        for rank, plan in enumerate(plans):
            if plan != plans[0]:
                raise OrderError(
                    f"Rank {rank} has the hooks {list(plan)}, main has {list(plans[0])}; register the same hooks on "
                    "all ranks (those for main alone with ranks='main')."
                )
