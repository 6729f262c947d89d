"""Deadlines for the phases of a run and for every hook."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from hookloop.core import HookContext
from hookloop.core.state import StopRequest
from hookloop.errors import UnknownNameError
from hookloop.hooks.phase_events import PhaseEvents, running_hook
from hookloop.monitoring.phases import PHASES
from hookloop.monitoring.ticker import require_seconds
from hookloop.monitoring.watchdog import Activity, Overdue, Policy, Watchdog, require_policy

log = logging.getLogger("hookloop.hooks.watchdog")

SAVE = "save"
HOOK = "hook"
HOOK_PREFIX = "hook:"
DEADLINES: Mapping[str, float] = {
    "start-up": 600.0, "rollout": 3600.0, "train": 3600.0, "evaluation": 3600.0, SAVE: 600.0, HOOK: 600.0, "end": 600.0,
}  # fmt: skip


class WatchdogHook(PhaseEvents):
    """Write the stacks of all threads when a phase or a hook exceeds its deadline; then warn, stop or abort.

    Args:
        deadlines: Seconds by phase (``start-up``, ``epoch``, ``rollout``, ``train``, ``evaluation``, ``end``), for
            every call of a hook (``hook``), for hooks that save (``save``), or for one hook (``hook:NAME``). In
            place of the defaults, which are ten minutes, or an hour for the work itself; an epoch may take for ever.
        policy: ``warn`` goes on, ``stop`` asks the run to stop at its next safe point, ``abort`` ends the process
            at once with exit code 70.
        log_file: Where to write the stacks; the error output by default.
    """

    ranks = "all"
    on_error = "disable"
    priority = 1001  # before the heartbeat: whatever hangs, this must be awake

    def __init__(
        self,
        deadlines: Mapping[str, float] | None = None,
        policy: Policy = "warn",
        log_file: str | Path | None = None,
    ) -> None:
        super().__init__()
        require_policy(policy)
        chosen = DEADLINES if deadlines is None else deadlines
        for kind, seconds in chosen.items():
            if kind not in (*PHASES, SAVE, HOOK) and not kind.startswith(HOOK_PREFIX):
                raise UnknownNameError("deadline for", kind, (*PHASES, SAVE, HOOK, f"{HOOK_PREFIX}NAME"))
            require_seconds(f"The deadline of {kind!r}", seconds)
        self.deadlines = dict(chosen)
        self.policy: Policy = policy
        self.log_file = None if log_file is None else str(log_file)
        self._watchdog: Watchdog | None = None
        self._context: HookContext | None = None
        self._name = ""
        self._stop_reason = ""

    @property
    def overdue(self) -> list[Overdue]:
        """What has exceeded its deadline so far in this run, the last hundred."""
        return [] if self._watchdog is None else list(self._watchdog.overdue)

    def on_restore(self, ctx: HookContext) -> None:
        """Start to watch, before a checkpoint is loaded."""
        super().on_restore(ctx)
        self._start(ctx)

    def on_training_start(self, ctx: HookContext) -> None:
        """Start to watch, if the hook joins late; drop a stop that was asked for in an earlier attempt."""
        self._start(ctx)
        if ctx.state.stop is not None and ctx.state.stop.by == ctx.hook and not self._stop_reason:
            ctx.state.stop = None  # a hang ends an attempt, not the run
        names = () if ctx.loop is None else [entry.name for entry in ctx.loop.hooks.entries()]
        for kind in self.deadlines:
            if kind.startswith(HOOK_PREFIX) and kind.removeprefix(HOOK_PREFIX) not in names:
                log.warning("there is a deadline for %r, but no hook of that name", kind)

    def on_epoch_end(self, ctx: HookContext) -> None:
        """Ask again for a stop that was asked for from the other thread, in case the loop wrote over it."""
        if self._stop_reason:
            ctx.request_stop(self._stop_reason)

    def on_close(self) -> None:
        """Watch no more."""
        if self._watchdog is not None:
            self._watchdog.stop()
        self._context = None

    def _start(self, ctx: HookContext) -> None:
        if self._context is not None:
            return
        self._context, self._name, self._stop_reason = ctx, ctx.hook, ""
        self._watchdog = Watchdog(
            self.deadlines, self._activities, policy=self.policy, stop=self._ask_to_stop, log_file=self.log_file
        )
        self._watchdog.start()

    def _activities(self) -> list[Activity]:
        found = [
            Activity(f"phase {phase.name!r}", (phase.name,), phase.number, phase.since_ns)
            for phase in self._trace.stack
        ]
        ctx = self._context
        hook = None if ctx is None else running_hook(ctx)
        if ctx is not None and hook is not None:
            saves = (SAVE,) if hook.stage == "checkpoint" else ()
            # With the clocks: a hook that decided not to run is not counted as called, and looks the same next time.
            counted = tuple(value for name, value in dict(ctx.readings).items() if name != "seconds")
            call = (hook.event, hook.call, counted)
            kinds = (f"{HOOK_PREFIX}{hook.name}", *saves, HOOK)
            found.append(Activity(f"hook {hook.name!r} at {hook.event}", kinds, call))
        return found

    def _ask_to_stop(self, late: Overdue) -> None:
        self._stop_reason = late.words
        state = None if self._context is None else self._context.state
        if state is not None and state.stop is None:
            state.stop = StopRequest(self._name, late.words, state.clocks.epochs, state.clocks.env_steps)
