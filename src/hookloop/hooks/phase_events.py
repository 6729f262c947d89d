"""From events to phases: what a run is doing, for those who look at it from another thread."""

from __future__ import annotations

from dataclasses import dataclass

from hookloop.core import HookContext
from hookloop.errors import UnknownNameError
from hookloop.monitoring import phases
from hookloop.monitoring.phases import PhaseTrace


@dataclass(frozen=True, slots=True)
class RunningHook:
    """The hook that is being called, and the how-manyth of its calls this is."""

    name: str
    event: str
    stage: str
    call: int


class PhaseEvents:
    """Writes the phase a run is in into ``trace``, a few times per epoch."""

    def __init__(self) -> None:
        self._trace = PhaseTrace()

    def on_restore(self, ctx: HookContext) -> None:
        """Begin to start up."""
        self._trace.reset(phases.START_UP)

    def on_epoch_start(self, ctx: HookContext) -> None:
        """Begin an epoch; it lasts until the next one, so that what is done at its end belongs to it."""
        self._trace.reset(phases.EPOCH)

    def on_rollout_start(self) -> None:
        """Begin to collect."""
        self._trace.enter(phases.ROLLOUT)

    def on_rollout_end(self) -> None:
        """End to collect."""
        self._trace.leave(phases.ROLLOUT)

    def on_train_phase_start(self) -> None:
        """Begin to optimise."""
        self._trace.enter(phases.TRAIN)

    def on_train_phase_end(self) -> None:
        """End to optimise."""
        self._trace.leave(phases.TRAIN)

    def on_evaluation_start(self) -> None:
        """Begin to evaluate."""
        self._trace.enter(phases.EVALUATION)

    def on_evaluation_end(self) -> None:
        """End to evaluate."""
        self._trace.leave(phases.EVALUATION)

    def on_training_end(self) -> None:
        """Begin to end."""
        self._trace.reset(phases.END)


def running_hook(ctx: HookContext) -> RunningHook | None:
    """Return the hook that is being called now; from any thread, so the answer may be a moment old."""
    event, name = ctx.event, ctx.hook
    if not event or not name or ctx.loop is None:
        return None
    try:
        entry = ctx.loop.hooks.entry(name)
    except UnknownNameError:  # removed this very moment
        return None
    slot = entry.slots.get(event)
    # Without a slot the two names were read while they changed.
    return None if slot is None else RunningHook(name, event, entry.options.stage, slot.calls)
