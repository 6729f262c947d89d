"""The base classes of hooks. None is needed: any object with ``on_*`` methods, or a function, is a hook.

The events in the order in which one epoch meets them::

    restore
    training_start
      epoch_start
        rollout_start  (step_end  episode_end)*  rollout_end
        train_phase_start  (minibatch_start  gradients  optimizer_step  minibatch_end)*  train_phase_end
        evaluation_start  evaluation_end
      epoch_end            evaluate → observe → report → checkpoint → publish
    training_end
    close                  in reverse order

A supervised epoch leaves the rollout line out; a worker's leaves the train line out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hookloop.core.context import HookContext
from hookloop.errors import RegistrationError

Metrics = Mapping[str, Any]


class Hook:
    """A hook with the pair ``should_run`` / ``run``, called on each step of the loop.

    Override ``run`` (and ``should_run`` to choose the steps), or write ``on_<event>`` methods, or both.
    Name the attributes that must survive a resume in ``saved``; without it, the plain attributes that
    changed since registration are saved.
    """

    saved: tuple[str, ...] = ()

    def should_run(self, context: HookContext) -> bool:
        """Tell whether to run at this step."""
        return True

    def run(self, context: HookContext) -> Metrics | None:
        """Do the work; a mapping that is returned becomes metrics under the hook's name."""
        return None


class TrainerHook:
    """A hook with one method per event; override the ones you want, the others cost nothing."""

    saved: tuple[str, ...] = ()

    def on_restore(self, ctx: HookContext) -> Metrics | None:
        """Load a checkpoint, if the run goes on from one."""

    def on_training_start(self, ctx: HookContext) -> Metrics | None:
        """Act once per process, after any restore."""

    def on_epoch_start(self, ctx: HookContext) -> Metrics | None:
        """Act before each epoch."""

    def on_rollout_start(self, ctx: HookContext) -> Metrics | None:
        """Act before collection."""

    def on_step_end(self, ctx: HookContext) -> Metrics | None:
        """Act after each vector environment step."""

    def on_episode_end(self, ctx: HookContext) -> Metrics | None:
        """Act when episodes finished in a step."""

    def on_rollout_end(self, ctx: HookContext) -> Metrics | None:
        """Act after collection."""

    def on_train_phase_start(self, ctx: HookContext) -> Metrics | None:
        """Act before all optimisation of an epoch."""

    def on_minibatch_start(self, ctx: HookContext) -> Metrics | None:
        """Act when a batch is ready, before forward."""

    def on_gradients(self, ctx: HookContext) -> Metrics | None:
        """Act after backward and unscale, before clipping."""

    def on_optimizer_step(self, ctx: HookContext) -> Metrics | None:
        """Act after the optimizer's step, before zero_grad."""

    def on_minibatch_end(self, ctx: HookContext) -> Metrics | None:
        """Act after each minibatch, stepped or not."""

    def on_train_phase_end(self, ctx: HookContext) -> Metrics | None:
        """Act after all optimisation of an epoch."""

    def on_evaluation_start(self, ctx: HookContext) -> Metrics | None:
        """Act before one evaluation or validation."""

    def on_evaluation_end(self, ctx: HookContext) -> Metrics | None:
        """Act after one evaluation or validation."""

    def on_epoch_end(self, ctx: HookContext) -> Metrics | None:
        """Act after each epoch."""

    def on_checkpoint_saved(self, ctx: HookContext) -> Metrics | None:
        """Act after a checkpoint is durable."""

    def on_policy_updated(self, ctx: HookContext) -> Metrics | None:
        """Act when a worker has applied new weights."""

    def on_lesson_changed(self, ctx: HookContext) -> Metrics | None:
        """Act when a lesson is selected, unlocked, graduated or regressed."""

    def on_stop_requested(self, ctx: HookContext) -> Metrics | None:
        """Act when the loop honours a request to stop."""

    def on_hook_error(self, ctx: HookContext) -> Metrics | None:
        """Act when another hook failed and the run goes on."""

    def on_exception(self, ctx: HookContext) -> Metrics | None:
        """Act when the run failed or was interrupted by an exception."""

    def on_training_end(self, ctx: HookContext) -> Metrics | None:
        """Act exactly once at the end, whatever the outcome."""

    def on_close(self, ctx: HookContext) -> Metrics | None:
        """Release resources."""


class PeriodicHook(Hook):
    """A hook that runs each time the step passes a multiple of ``frequency``, after ``start_step``."""

    def __init__(self, frequency: int, start_step: int = 0) -> None:
        if isinstance(frequency, bool) or not isinstance(frequency, int) or frequency < 1:  # type: ignore[redundant-expr]  # users pass anything
            raise RegistrationError(
                f"{type(self).__name__} needs a frequency in whole steps, at least 1, got {frequency!r}; "
                "leave the hook out to never run it."
            )
        if isinstance(start_step, bool) or not isinstance(start_step, int):  # type: ignore[redundant-expr]
            raise RegistrationError(
                f"{type(self).__name__} needs a start_step that is a whole number, got {start_step!r}."
            )
        self.frequency = frequency
        self.start_step = start_step

    def should_run(self, context: HookContext) -> bool:
        """Tell whether a multiple of ``frequency`` was passed since the step before."""
        step = context.step
        # Outside a run nobody has looked before: the step before this one is then the one below it.
        previous = step - 1 if context.previous_step is None else context.previous_step
        since = max(previous, self.start_step, 0)
        return step // self.frequency > since // self.frequency


class CompositeHook:
    """An ordered group of hooks under one name, each with its own schedule, ranks and failure policy."""

    def __init__(self, hooks: Iterable[object], *, name: str | None = None) -> None:
        self.children = list(hooks)
        if name is not None:
            self.name = name
        if not self.children:
            raise RegistrationError("A CompositeHook needs at least one hook, got none; leave it out instead.")

    def should_run(self, context: HookContext) -> bool:
        """Tell whether any child of the ``should_run`` / ``run`` kind would run."""
        return any(child.should_run(context) for child in self.children if isinstance(child, Hook | CompositeHook))

    def run(self, context: HookContext) -> Metrics | None:
        """Run the children that are due, when used without a manager; metrics go under the child's name."""
        found: dict[str, Any] = {}
        for number, child in enumerate(self.children, start=1):
            if isinstance(child, Hook | CompositeHook) and child.should_run(context):
                name = getattr(child, "name", type(child).__name__)
                metrics = {f"{name}/{key}": value for key, value in (child.run(context) or {}).items()}
                is_taken = any(key in found for key in metrics)
                found.update({f"{number}/{key}" if is_taken else key: value for key, value in metrics.items()})
        return found or None
