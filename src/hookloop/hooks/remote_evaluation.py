"""Evaluations by other processes: a run asks for them once a checkpoint is durable, and trains on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from hookloop.core import Always, HookContext
from hookloop.errors import EvaluationError, RegistrationError, StatsError
from hookloop.hooks.evaluation import EvaluationHook, is_last_epoch

if TYPE_CHECKING:
    from hookloop.checkpoints import Checkpoint
    from hookloop.stats import EvaluationTasks

MOST_WAITING = 8


class RemoteEvaluationHook:
    """Puts an evaluation among the tasks of the statistics for each checkpoint that is due one, and for the last.

    ``hookloop eval-worker`` carries them out; what it finds is in the statistics, with the clocks of the checkpoint.
    A checkpoint is kept until it is evaluated. Tasks outlive the run: one that is killed finds them again.

    Args:
        local: What is evaluated, and when. It also evaluates where workers fail.
        open_tasks: Opens the tasks; called when training starts.
        suite: What workers play: ``training``, ``all``, or the name of a simulation in the run's settings.
        on_failure: ``local`` evaluates here when a task cannot be asked for and, at the next time one is due, when too
            many wait or a worker has given one up; ``skip`` only counts the failure.
        most_waiting: So many unfinished tasks mean that nobody works.
    """

    stage = "evaluate"
    serves = ("evaluation",)
    on_error = "warn"

    def __init__(
        self,
        local: EvaluationHook,
        open_tasks: Callable[[], EvaluationTasks],
        *,
        suite: str = "training",
        on_failure: Literal["local", "skip"] = "local",
        most_waiting: int = MOST_WAITING,
    ) -> None:
        if local.task is None:
            raise RegistrationError("There is nothing to evaluate: the EvaluationHook has no task. Leave the hook out.")
        if on_failure not in ("local", "skip"):
            raise RegistrationError(f"on_failure must be 'local' or 'skip', got {on_failure!r}.")
        self.task = local.task
        self.schedule = {"epoch_end": self.task.when, "epoch_start": Always()}
        self._local, self._open_tasks, self._suite = local, open_tasks, suite
        self._on_failure, self._most_waiting = on_failure, most_waiting
        self._tasks: EvaluationTasks | None = None
        self._is_due = False
        self._held: set[str] = set()
        self._told: set[str] = set()

    def on_training_start(self, ctx: HookContext) -> None:
        """Open the tasks, and keep the checkpoints of those that an earlier attempt has asked for."""
        if ctx.services.get("checkpoints") is None:
            raise EvaluationError(
                "An evaluation by workers is of checkpoints, and this run has none: add a CheckpointHook, or evaluate "
                "inline or in the background."
            )
        self._tasks = self._open_tasks()
        self._told = {key.checkpoint_id for key, _ in self._tasks.of_run(ctx.state.run_id, ("failed",))}
        self._hold(ctx)

    def on_epoch_start(self, ctx: HookContext) -> None:
        """Forget the scores of an evaluation made here: the weights are about to change."""
        self._local.on_epoch_start(ctx)

    def on_epoch_end(self, ctx: HookContext) -> None:
        """Ask for a checkpoint, to have it evaluated; or evaluate here if workers have failed."""
        try:
            why = self._what_is_wrong(ctx)
        except StatsError as error:
            why = str(error)
        if why:
            self._fall_back(why, ctx)
        elif not is_last_epoch(ctx):  # of the last there will be a checkpoint anyway
            self._is_due = True
            ctx.request_checkpoint()

    def on_checkpoint_saved(self, ctx: HookContext) -> None:
        """Put the task among the others, if this checkpoint is due one or the last."""
        checkpoint: Checkpoint = ctx.checkpoint
        if not self._is_due and checkpoint.manifest.kind != "final":
            return
        self._is_due = False
        try:
            self._enqueue(checkpoint, ctx)
        except StatsError as error:
            self._fall_back(str(error), ctx)

    def on_close(self) -> None:
        """Let go of the database."""
        if self._tasks is not None:
            self._tasks.close()
            self._tasks = None

    def state_dict(self) -> dict[str, Any]:
        """Return whether a checkpoint is waited for, and what was evaluated here."""
        return {"is_due": self._is_due, "local": self._local.state_dict()}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        self._is_due = bool(saved["is_due"])
        self._local.load_state_dict(saved["local"])

    def _enqueue(self, checkpoint: Checkpoint, ctx: HookContext) -> None:
        from hookloop.stats.evaluation_tasks import TaskKey  # with SQLAlchemy

        seed = self.task.first_seed(ctx.state.seed)
        self._opened.enqueue(TaskKey(ctx.state.run_id, checkpoint.id, self._suite, seed), checkpoint.uri)
        self._hold(ctx)

    def _what_is_wrong(self, ctx: HookContext) -> str:
        """Return why workers cannot be relied on now; nothing if they can."""
        failed = [each for each in self._opened.of_run(ctx.state.run_id, ("failed",)) if each[0][1] not in self._told]
        self._told |= {key.checkpoint_id for key, _ in failed}
        if failed:
            return f"a worker has given up {failed[-1][0].checkpoint_id}: {failed[-1][1]}"
        waiting = self._hold(ctx)
        if waiting >= self._most_waiting:
            return f"{waiting} evaluations wait, and nobody carries them out; start 'hookloop eval-worker'"
        return ""

    def _hold(self, ctx: HookContext) -> int:
        """Keep the checkpoints that wait to be evaluated, and no others; return how many there are."""
        waiting = {_name(key.checkpoint_id) for key, _ in self._opened.of_run(ctx.state.run_id)}
        for name in waiting - self._held:
            ctx.services["checkpoints"].hold(name)
        for name in self._held - waiting:
            ctx.services["checkpoints"].hold(name, held=False)
        self._held = waiting
        return len(waiting)

    def _fall_back(self, why: str, ctx: HookContext) -> None:
        ctx.note_failure(EvaluationError(f"The evaluation by a worker failed: {why}"))
        if self._on_failure == "local":
            self._local.evaluate_now(ctx)

    @property
    def _opened(self) -> EvaluationTasks:
        if self._tasks is None:
            raise StatsError("The tasks are open between the start and the end of training.")
        return self._tasks


def _name(checkpoint_id: str) -> str:
    """Return the name of a checkpoint in its run."""
    return checkpoint_id.rpartition("/")[2].partition("@")[0]
