"""The events of a run: their names, when they fire, and the names the seeds use for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from hookloop.core.clocks import (
    ENV_STEPS,
    EPISODES,
    EPOCHS,
    MINIBATCHES,
    OPTIMIZER_STEPS,
    POLICY_VERSION,
)
from hookloop.errors import NameClashError, RegistrationError, UnknownNameError


@dataclass(frozen=True, slots=True)
class Event:
    """A point of the loop at which hooks are called."""

    name: str
    fires: str
    clock: str = EPOCHS
    """The clock a schedule is counted on when it does not name one; also what ``ctx.step`` reads."""
    aliases: tuple[str, ...] = ()
    is_scheduled: bool = True
    """Whether a hook's schedule gates this event; the turning points of a run always reach every hook."""
    is_isolated: bool = False
    """Whether every handler runs even if one fails; the failures are raised afterwards."""
    is_reversed: bool = False


BUILT_IN_EVENTS: tuple[Event, ...] = (
    Event("restore", "once per process, before training_start: load a checkpoint here", is_scheduled=False),
    Event(
        "training_start",
        "once per process, after any restore",
        aliases=("new_training_run", "train_start"),
        is_scheduled=False,
    ),
    Event("epoch_start", "before each epoch"),
    Event("rollout_start", "before collection"),
    Event("step_end", "after each vector environment step, or worker step", ENV_STEPS, ("step", "env_step")),
    Event("episode_end", "when episodes finished in a step, all of them at once", EPISODES),
    Event("rollout_end", "after collection"),
    Event("train_phase_start", "before all optimisation of an epoch", aliases=("update_start",)),
    Event("minibatch_start", "batch ready, before forward", MINIBATCHES, ("mb_start", "batch_start")),
    Event(
        "gradients",
        "after backward and unscale, before clipping: the only place gradients are whole",
        OPTIMIZER_STEPS,
    ),
    Event("optimizer_step", "after the step, before zero_grad", OPTIMIZER_STEPS),
    Event("minibatch_end", "after each minibatch, stepped or not", MINIBATCHES, ("mb_end", "batch_end")),
    Event("train_phase_end", "after all optimisation of an epoch", aliases=("update_end",)),
    Event("evaluation_start", "before one evaluation or validation", aliases=("validation_start",)),
    Event("evaluation_end", "after one evaluation or validation", aliases=("validation_end",)),
    Event("epoch_end", "after each epoch: evaluate, report, checkpoint, publish"),
    Event("checkpoint_saved", "after the write is durable, with an immutable id and URI", is_scheduled=False),
    Event("policy_updated", "when a worker has applied new weights", POLICY_VERSION),
    Event("lesson_changed", "when a lesson is selected, unlocked, graduated or regressed", is_scheduled=False),
    Event("stop_requested", "when the loop honours a request to stop: who and why", is_scheduled=False),
    Event("hook_error", "when a hook failed and the run goes on: which hook, what error", is_scheduled=False),
    Event(
        "exception",
        "when the run failed or was interrupted by an exception",
        aliases=("failure",),
        is_scheduled=False,
        is_isolated=True,
    ),
    Event(
        "training_end",
        "exactly once, always; ctx.outcome is completed, stopped, interrupted or failed",
        aliases=("training_complete", "train_end"),
        is_scheduled=False,
        is_isolated=True,
    ),
    Event(
        "close",
        "release resources: always, in reverse order",
        aliases=("teardown",),
        is_scheduled=False,
        is_isolated=True,
        is_reversed=True,
    ),
)


class EventTable:
    """The events one set of hooks knows: the built-in ones and those its workload declares.

    Args:
        step_clock: What ``step_end`` is counted on.
    """

    __slots__ = ("_aliases", "_events")

    def __init__(self, step_clock: str = ENV_STEPS) -> None:
        self._events = {event.name: event for event in BUILT_IN_EVENTS}
        self._events["step_end"] = replace(self._events["step_end"], clock=step_clock)
        self._aliases = {alias: event.name for event in BUILT_IN_EVENTS for alias in event.aliases}

    def __iter__(self) -> Iterator[Event]:
        return iter(tuple(self._events.values()))

    def __contains__(self, name: str) -> bool:
        return name in self._events or name in self._aliases

    @property
    def names(self) -> tuple[str, ...]:
        """All canonical names, in the order in which a run meets them."""
        return tuple(self._events)

    @property
    def aliases(self) -> Mapping[str, str]:
        """The other names that are accepted, with the name each stands for."""
        return self._aliases

    def declare(self, event: Event) -> None:
        """Add an event of a workload's own."""
        if not event.name.isidentifier() or event.name.startswith(("_", "on_")):
            raise RegistrationError(
                f"An event needs a plain name such as 'env_reset' (hooks then write on_env_reset), got {event.name!r}."
            )
        if event.name in self and self.find(event.name) != event:
            raise NameClashError(f"There is an event {event.name!r} already; choose another name.")
        self._events[event.name] = event

    def find(self, name: str, *, where: str = "") -> Event:
        """Return the event called ``name``, by any of its names; ``where`` says who asked."""
        canonical = self._aliases.get(name, name)
        if canonical in self._events:
            return self._events[canonical]
        raise UnknownNameError("event", name, (*self._events, *self._aliases), where=where)
