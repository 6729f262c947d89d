"""From registered hooks to calls: the plan of every event, results, failures and deliveries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from hookloop.core.background import Delivery
from hookloop.core.context import HookContext
from hookloop.core.emitters import Emit, Emitters, Gate, emitter
from hookloop.core.entries import Entry
from hookloop.core.failures import count_failure, log, record_failure
from hookloop.core.ranks import Ranks
from hookloop.core.roster import Roster
from hookloop.core.slots import NOT_RUN, Slot
from hookloop.errors import HookResultError

Plain = Any


class Switchboard:
    """Holds one emitter per event and renews them when the roster changes.

    A change puts a stand-in before every event. Whichever fires next takes in the change, whole, on the
    training thread; so hooks may be added, removed or finish in the background at any time, from anywhere.
    """

    def __init__(
        self, roster: Roster, ranks: Ranks, time_ns: Callable[[], int], *, on_error: str, strict: bool
    ) -> None:
        self.emit = Emitters()
        self.time_ns = time_ns
        self.results: dict[str, Plain] = {}
        self.has_started = False
        self._roster = roster
        self._ranks = ranks
        self._on_error = on_error
        self._strict = strict
        self._gates: dict[str, Gate] = {}
        self._plan: dict[str, Emit] = {}
        self._is_changed = True
        self.announce()

    def change(self) -> None:
        """Note that hooks were added, removed or switched."""
        self._is_changed = True
        self.announce()

    def announce(self) -> None:
        """Let the next event, whichever it is, first take in what happened. Safe from any thread."""
        for event in self._roster.events.names:
            setattr(self.emit, event, self._renewing(event))

    def gates(self, ctx: HookContext) -> list[Gate]:
        """Return the gates of the current plan."""
        if self._is_changed:
            self._compile(ctx)
        return list(self._gates.values())

    def is_live(self, entry: Entry) -> bool:
        """Tell whether a hook takes part on this rank."""
        return entry.is_enabled and (entry.options.ranks == "all" or self._ranks.rank == 0)

    def fire_alone(self, event: str, entry: Entry, ctx: HookContext) -> None:
        """Fire an event for one hook only, if it handles it."""
        if event in entry.slots:
            fire, _ = emitter(self._roster.events.find(event), (entry.slots[event],), self)
            fire(ctx)

    def fire_despite(self, event: str, ctx: HookContext, error: BaseException | None) -> None:
        """Fire an event while a run ends; an error that is under way stays the one that is raised."""
        self.despite(error, lambda: getattr(self.emit, event)(ctx))

    def despite(self, error: BaseException | None, act: Callable[[], None]) -> None:
        """Act; if that fails while ``error`` is under way, note it there instead of raising."""
        try:
            act()
        except Exception as second:  # the dispatcher: the first error must not be masked
            if error is None:
                raise
            error.add_note(f"and while the run ended: {second!r}")

    def deliver(self, entry: Entry, ctx: HookContext, *, wait: bool) -> None:
        """Take what a background hook has finished; all of it, when told to wait."""
        if entry.runner is None:
            return
        for delivery in entry.runner.collect(wait=wait):
            slot = entry.slots[delivery.event]
            try:
                self._take(slot, delivery, ctx)
            except Exception as error:  # the dispatcher: the hook's policy decides
                if self.fails(slot, error, ctx):
                    raise

    def settle(self, slot: Slot, result: object, ctx: HookContext) -> None:
        """Take what a hook returned: metrics, under its name."""
        if result is NOT_RUN:
            slot.calls -= 1  # the dispatcher counts the look; a hook that decided not to run was not called
            return
        if not isinstance(result, Mapping):
            raise HookResultError(
                f"Hook {slot.name!r} returned {result!r:.60} (a {type(result).__name__}) at {slot.event}; "
                "return a mapping of metrics, or nothing."
            )
        returned = cast("Mapping[str, Plain]", result)
        metrics = {f"{slot.name}/{key}": value for key, value in returned.items()}
        self.results.update(metrics)
        ctx.log(metrics)

    def fails(self, slot: Slot, error: Exception, ctx: HookContext) -> bool:
        """Apply the hook's failure policy; tell whether the error must be raised."""
        entry = self._roster.entries.get(slot.name)
        own = entry.options.on_error if entry is not None else None
        policy = "raise" if self._strict else own or self._on_error

        def disable() -> None:
            if entry is not None:
                entry.is_enabled = False
                self.change()

        if record_failure(slot, error, ctx, policy, disable):
            return True
        self._tell_of_failure(slot.name, slot.event, error, ctx)
        return False

    def note_failure(self, error: Exception, ctx: HookContext) -> None:
        """Count and tell of an error that the running hook has dealt with itself."""
        failures = count_failure(ctx.hook, ctx.event, error, ctx)
        log.error("hook %r failed at %s (%d so far) and goes on: %s", ctx.hook, ctx.event, failures.count, error)
        self._tell_of_failure(ctx.hook, ctx.event, error, ctx)

    def _tell_of_failure(self, hook: str, event: str, error: Exception, ctx: HookContext) -> None:
        if event == "hook_error":
            return
        outer = ctx.exception, ctx.failed_hook
        ctx.exception, ctx.failed_hook = error, hook
        try:
            self.emit.hook_error(ctx)
        finally:
            ctx.exception, ctx.failed_hook = outer

    def _renewing(self, event: str) -> Emit:
        def renew_and_fire(ctx: HookContext) -> None:
            self._renew(ctx)
            getattr(self.emit, event)(ctx)

        return renew_and_fire

    def _renew(self, ctx: HookContext) -> None:
        if self._is_changed:
            self._compile(ctx)
        for event, fire in self._plan.items():
            setattr(self.emit, event, fire)
        # After the plan is in place: what a background thread announces meanwhile is then not overwritten unseen.
        for entry in list(self._roster.entries.values()):
            self.deliver(entry, ctx, wait=False)
            if self.has_started and not entry.is_started and self.is_live(entry):
                entry.is_started = True  # joined late: it still gets its start
                self.fire_alone("training_start", entry, ctx)

    def _compile(self, ctx: HookContext) -> None:
        live = [entry for entry in self._roster.in_order(ctx.readings) if self.is_live(entry)]
        self._gates, self._plan = {}, {}
        for event in self._roster.events:
            slots = [entry.slots[event.name] for entry in live if event.name in entry.slots]
            for order, slot in enumerate(slots):
                slot.order = order
            fire, gate = emitter(event, slots, self)
            self._plan[event.name] = fire
            if gate is not None:
                self._gates[event.name] = gate
        self._is_changed = False

    def _take(self, slot: Slot, delivery: Delivery, ctx: HookContext) -> None:
        if delivery.error is not None:
            raise delivery.error
        snapshot = delivery.snapshot
        if delivery.result is not None:
            self.settle(slot, delivery.result, snapshot)
        ctx.state.pending_metrics.extend(snapshot.drain_metrics())
        ctx.state.pending_progress_updates.update(snapshot.state.pending_progress_updates)
        if ctx.state.stop is None:
            ctx.state.stop = snapshot.state.stop
        for request in snapshot.state.requests:
            ctx.request(request)
