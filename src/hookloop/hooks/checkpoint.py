"""Checkpoints of a run: when to save, what to go on from, what to publish."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any

from hookloop.checkpoints import Checkpoint, CheckpointManager, Description
from hookloop.checkpoints.environment import current_environment, differences
from hookloop.checkpoints.manifest import Kind
from hookloop.checkpoints.publishing import Publisher, Sink
from hookloop.core import Always, CompositeHook, Every, HookContext, Schedule, TrainingLoop
from hookloop.core.schedule_text import as_schedule
from hookloop.errors import CheckpointError, CheckpointWriteError, HookloopError, RegistrationError
from hookloop.hooks.rank_states import require_same_world, share_state, whole_state

log = logging.getLogger("hookloop.hooks.checkpoint")


class CheckpointHook(CompositeHook):
    """Saves checkpoints at an interval and at the end, goes on from one at the start, and publishes some.

    Args:
        checkpoint_manager: What writes and reads them.
        checkpoint_interval: Epochs between two checkpoints; the last one is always saved.
        wandb_checkpoint_interval: Epochs between two that are published; by default each one is. The last always is.
        schedule: When to save, in place of the interval: a schedule, or a text such as "every 30 seconds".
        resume: Go on from a checkpoint: True for the latest, or a selector; False begins anew.
        sinks: Where to publish; nothing is published without one.
        strict: Refuse to resume if the hooks are not those of the checkpoint.
        max_failed_saves: So many writes that fail in a row end the run; fewer are reported, and the run goes on.
        within_epochs: When to save after a batch, too, of a workload that can go on there.
    """

    def __init__(
        self,
        checkpoint_manager: CheckpointManager,
        checkpoint_interval: int = 1,
        wandb_checkpoint_interval: int | None = None,
        *,
        schedule: Schedule | str | None = None,
        resume: bool | str = False,
        sinks: Sequence[Sink] = (),
        strict: bool = True,
        max_failed_saves: int = 3,
        within_epochs: Schedule | str | None = None,
    ) -> None:
        _require_interval("checkpoint_interval", checkpoint_interval)
        if wandb_checkpoint_interval is not None:
            _require_interval("wandb_checkpoint_interval", wandb_checkpoint_interval)
        when = Every(checkpoint_interval) if schedule is None else as_schedule(schedule)
        self.checkpoint_manager = checkpoint_manager
        save_type = SaveHook if within_epochs is None else BatchSaveHook
        save = save_type(checkpoint_manager, when, resume=resume, strict=strict, max_failed_saves=max_failed_saves)
        if within_epochs is not None:
            save.schedule["minibatch_end"] = as_schedule(within_epochs)
        children: list[object] = [save]
        if sinks:
            children.append(PublishHook(checkpoint_manager, sinks, wandb_checkpoint_interval or 1))
        super().__init__(children, name="checkpoint")


class SaveHook:
    """Saves the run, and goes on from what was saved.

    Every rank takes part and gives what it has of its own; main alone reads and writes.
    """

    name = "save"
    ranks = "all"
    stage = "checkpoint"
    serves = ("checkpoint",)
    saved = ("failed_in_a_row",)

    def __init__(
        self, manager: CheckpointManager, when: Schedule, *, resume: bool | str, strict: bool, max_failed_saves: int
    ) -> None:
        self.schedule: dict[str, Schedule] = {"epoch_end": when, "epoch_start": Always()}
        self.failed_in_a_row = 0
        self._manager = manager
        self._resume: str | None = "latest" if resume is True else resume or None
        self._is_strict = strict
        self._max_failed_saves = max_failed_saves

    def on_restore(self, ctx: HookContext) -> None:
        """Go on from a checkpoint, if asked to; never write into the folder of another run by accident."""
        loop = _loop_of(ctx)
        ranks, restored = loop.hooks.ranks, None
        if ranks.rank == 0:
            ctx.services["checkpoints"] = self._manager
            restored = self._find(ranks.world_size)
        state = share_state(ranks, None if restored is None else restored[1], _parts(loop))
        if state is None:
            return
        checkpoint = None if restored is None else restored[0]
        _load(loop, state, checkpoint, strict=self._is_strict)
        if checkpoint is not None:
            _tell_of_restore(checkpoint)
        is_foreign = checkpoint is not None and not self._manager.is_ours(checkpoint)
        if ranks.broadcast(is_foreign):
            self._save(ctx, "periodic")  # from now on the run can do without what it came from

    def _find(self, world_size: int) -> tuple[Checkpoint, Any] | None:
        """Return what to go on from, if asked to and if there is something."""
        self._manager.open()
        if self._resume is not None:
            restored = self._manager.restore(self._resume)
            if restored is not None:
                require_same_world(restored[1], world_size, str(restored[0].path))
            return restored
        if self._manager.store.names():
            raise CheckpointError(
                f"{self._manager.folder} holds the checkpoints of an earlier run; "
                "go on with it (resume=True), or choose another folder."
            )
        return None

    def on_training_start(self, ctx: HookContext) -> None:
        """Get hold of the memory for snapshots while the first epoch is trained."""
        loop = _loop_of(ctx)
        if loop.hooks.ranks.rank == 0:
            self._manager.reserve(loop.state_dict(), parts=_parts(loop))

    def on_epoch_start(self, ctx: HookContext) -> None:
        """Tell of checkpoints that have become durable meanwhile."""
        self._deliver(ctx)

    def on_epoch_end(self, ctx: HookContext) -> None:
        """Save."""
        self._deliver(ctx, wait=self._manager.when_busy == "wait")
        self._save(ctx, "periodic")
        self._deliver(ctx)

    def on_training_end(self, ctx: HookContext) -> None:
        """Save the end of a run, unless it failed: then what is in memory may be half of a step."""
        self._deliver(ctx, wait=True)
        if ctx.exception is None:
            self._save(ctx, "interrupted" if ctx.outcome == "interrupted" else "final")
            self._deliver(ctx, wait=True, is_last=True)

    def on_close(self, ctx: HookContext) -> None:
        """Wait for the writer and release the run's lock."""
        if _loop_of(ctx).hooks.ranks.rank == 0:
            ctx.services.pop("checkpoints", None)
            self._manager.close()

    def _save(self, ctx: HookContext, kind: Kind) -> None:
        loop = _loop_of(ctx)
        state = whole_state(loop, _parts(loop))
        if state is None:
            return
        try:
            self._manager.save(state, _describe(ctx, kind), parts=_parts(loop))
        except CheckpointWriteError as error:
            self._tolerate(error, ctx, is_last=kind != "periodic")

    def _deliver(self, ctx: HookContext, *, wait: bool = False, is_last: bool = False) -> None:
        if _loop_of(ctx).hooks.ranks.rank != 0:
            return
        try:
            durable = self._manager.collect(wait=wait)
        except CheckpointWriteError as error:
            self._tolerate(error, ctx, is_last=is_last)
            return
        for checkpoint in durable:
            self.failed_in_a_row = 0
            ctx.state.latest_checkpoint_uri = checkpoint.uri
            ctx.state.latest_saved_epoch = checkpoint.manifest.epochs
            _loop_of(ctx).checkpoint_saved(checkpoint)

    def _tolerate(self, error: CheckpointWriteError, ctx: HookContext, *, is_last: bool) -> None:
        """Report a failed write and go on, unless it was one too many, or there will be no other."""
        self.failed_in_a_row += 1
        if is_last or self.failed_in_a_row >= self._max_failed_saves:
            raise error
        ctx.note_failure(error)


class BatchSaveHook(SaveHook):
    """Saves within epochs, too: for data so large that an epoch is more than one wants to lose."""

    def on_minibatch_end(self, ctx: HookContext) -> None:
        """Save, unless the epoch is done with this batch: then its end is what is saved."""
        if getattr(_loop_of(ctx).workload, "is_within_epoch", False):
            self._deliver(ctx)
            self._save(ctx, "periodic")


class PublishHook:
    """Publishes durable checkpoints, in a thread; a place that cannot be reached never stops training."""

    name = "publish"
    stage = "publish"
    on_error = "warn"
    saved = ("published_epoch",)

    def __init__(self, manager: CheckpointManager, sinks: Sequence[Sink], interval: int) -> None:
        self.published_epoch = 0
        self._interval = interval
        self._publisher = Publisher(sinks, manager.hold)

    def on_checkpoint_saved(self, ctx: HookContext) -> None:
        """Publish this one if it is time for one, or the last."""
        checkpoint: Checkpoint = ctx.checkpoint
        is_last = checkpoint.manifest.kind == "final"
        epoch = checkpoint.manifest.epochs
        if not is_last and epoch // self._interval <= self.published_epoch // self._interval:
            return
        try:
            self._take_over(ctx, wait=is_last)
        finally:  # whatever has become of the one before
            if self._publisher.start(checkpoint):
                self.published_epoch = epoch
            if is_last:
                self._take_over(ctx, wait=True)

    def on_epoch_start(self, ctx: HookContext) -> None:
        """Note what has been published meanwhile."""
        self._take_over(ctx)

    def on_training_end(self, ctx: HookContext) -> None:
        """Wait for what is under way."""
        self._take_over(ctx, wait=True)

    def on_close(self) -> None:
        """End the thread."""
        self._publisher.close()

    def _take_over(self, ctx: HookContext, *, wait: bool = False) -> None:
        epoch, self.published_epoch = self.published_epoch, 0  # if it failed, so that the next one is tried
        published = self._publisher.take(wait=wait)
        self.published_epoch = epoch
        for kind, uri in published.items():
            if kind == "wandb":
                ctx.state.latest_wandb_uri = uri
            else:
                ctx.state.latest_checkpoint_uri = uri


def _loop_of(ctx: HookContext) -> TrainingLoop:
    if ctx.loop is None:
        raise CheckpointError("A CheckpointHook saves the state of a TrainingLoop; run it in one.")
    return ctx.loop


def _load(loop: TrainingLoop, state: Any, checkpoint: Checkpoint | None, *, strict: bool) -> None:
    try:
        loop.load_state_dict(state, strict=strict)
    except HookloopError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        where = "The checkpoint" if checkpoint is None else checkpoint.path
        raise CheckpointError(
            f"{where} is sound, but the state in it is none of this run ({type(error).__name__}: {error}). "
            "Resume with the settings and the code it was saved with."
        ) from error


def _parts(loop: TrainingLoop) -> dict[str, tuple[str, ...]]:
    return {part: ("workload", *path) for part, path in getattr(loop.workload, "parts", {}).items()}


def _describe(ctx: HookContext, kind: Kind) -> Description:
    workload, state = _loop_of(ctx).workload, ctx.state
    clock = getattr(workload, "progress_clock", "epochs")
    clocks = state.clocks.reading()
    metrics = {**ctx.metrics, **{f"eval/{name}": score for name, score in state.eval_scores.items()}}
    return Description(
        step=int(clocks[clock]),
        clock=clock,
        clocks=clocks,
        run_id=state.run_id,
        attempt=state.attempt,
        kind=kind,
        exactness=getattr(workload, "exactness", "bit-exact"),
        inexact_because=getattr(workload, "inexact_because", ""),
        metrics={name: float(value) for name, value in metrics.items() if _is_finite_number(value)},
        metadata={
            "agent_step": state.agent_step,
            "epoch": state.epoch,
            "total_time_seconds": clocks["seconds"],
            "is_final": kind == "final",
            "outcome": ctx.outcome,
        },
    )


def _is_finite_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _tell_of_restore(checkpoint: Checkpoint) -> None:
    manifest = checkpoint.manifest
    log.info("resumed from %s (%s=%d, epoch %d)", checkpoint.name, manifest.clock, manifest.step, manifest.epochs)
    if manifest.exactness != "bit-exact":
        log.warning("the resume is %s: %s", manifest.exactness, manifest.inexact_because)
    changed = differences(manifest.environment, current_environment())
    if changed:
        log.warning("the bits may differ from here on, since something changed: %s", "; ".join(map(str, changed)))


def _require_interval(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise RegistrationError(f"{name} must be at least 1 epoch, got {value!r}; leave the hook out to save nothing.")
