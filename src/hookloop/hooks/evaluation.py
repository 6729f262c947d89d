"""Evaluations of a run: when to score the policy, and who is told."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from hookloop.core import Always, HookContext, Never, PeriodicHook, When, derive_seed
from hookloop.core.background import BackgroundRunner
from hookloop.core.due import Rule
from hookloop.errors import EvaluationError, RegistrationError
from hookloop.evaluation.defaults import FULL_EXAMPLES, FULL_FREQUENCY, MAIN
from hookloop.evaluation.evaluator import evaluate, kept_global_random
from hookloop.evaluation.results import EvaluationResult, Key
from hookloop.evaluation.tasks import Curriculum, EvaluationTask, Player
from hookloop.hooks.evaluation_forms import periodic_task, task_of
from hookloop.hooks.evaluation_report import ReplaySink, log_late, log_result

log = logging.getLogger("hookloop.hooks.evaluation")

BY_FREQUENCY: Final = "by frequency"
ENDS_WELL = ("completed", "stopped")


class EvaluationHook(PeriodicHook):
    """Scores the policy in environments of its own, at its schedule and at the end.

    Two forms: ``EvaluationHook(eval_config, curriculum)`` and ``EvaluationHook(frequency=100, n_examples=64,
    eval_type="eval", evaluate_all_lessons=True, start_step=0)``. In a trainer the frequency counts epochs, in a
    rollout worker its steps. The scores are metrics of the same epoch, under ``eval_type``, and stand in the
    checkpoint of the same weights.

    Args:
        eval_config: An ``EvaluationTask``, an ``EvaluationConfig`` or a mapping of settings; None evaluates nothing.
        curriculum: Where lessons come from; the trainer's or worker's own by default.
        eval_type: What the evaluation is called; its metrics begin with it.
        evaluate_all_lessons: All lessons, or the current one; without a curriculum it is the training environment.
        start_step: No evaluation at or before it.
        frequency: Epochs, or steps of a worker, between two evaluations.
        n_examples: Episodes of each lesson.
        updates_curriculum: Tell the curriculum the scores; by default an evaluation of all lessons does.
        background: Play in a thread, with a copy of the policy; training goes on.
        player: Who plays; by default the trainer's or worker's ``player()``.
        replays: Takes recorded episodes.
    """

    stage = "evaluate"
    serves = ("evaluation",)

    def __init__(
        self,
        eval_config: object = BY_FREQUENCY,
        curriculum: Curriculum | int | None = None,
        eval_type: str = MAIN,
        evaluate_all_lessons: bool = True,
        start_step: int = 0,
        *,
        frequency: int | None = None,
        n_examples: int | None = None,
        updates_curriculum: bool | None = None,
        background: bool = False,
        player: Player | None = None,
        replays: ReplaySink | None = None,
    ) -> None:
        if isinstance(eval_config, int):  # the second form, by position
            eval_config, frequency = BY_FREQUENCY, eval_config
            if isinstance(curriculum, int):
                curriculum, n_examples = None, curriculum
        super().__init__(FULL_FREQUENCY if frequency is None else frequency, start_step)
        if eval_config == BY_FREQUENCY:
            self.task: EvaluationTask | None = periodic_task(
                self.frequency, FULL_EXAMPLES if n_examples is None else n_examples, eval_type,
                evaluate_all_lessons=evaluate_all_lessons, start_step=start_step,
                updates_curriculum=updates_curriculum,
            )  # fmt: skip
        else:
            self.task = task_of(eval_config, eval_type)
        self._may_do_without_curriculum = eval_config == BY_FREQUENCY
        self.curriculum: Curriculum | None = curriculum  # type: ignore[assignment]  # an int was taken for n_examples
        self.result: EvaluationResult | None = None
        """The latest, with the clocks it belongs to; None after a resume until there is one."""
        self.eval_scores: dict[str, float] = {}
        self.evaluated_at: list[float] = []
        when = Never() if self.task is None else self.task.when | When(is_last_epoch)
        self.schedule = {"epoch_end": when, "epoch_start": Always()}
        if self.task is None or not self.task.updates_curriculum:
            self.on_error = "warn"  # an observer: a simulation that fails is told of, and training goes on
        elif background:
            raise RegistrationError(
                f"The evaluation {self.task.name!r} updates the curriculum, and so changes training; when a thread is "
                "done is chance. Leave background=True out, or give updates_curriculum=False."
            )
        self._given_player, self._replays = player, replays
        self._runner = BackgroundRunner("evaluation", lambda: None) if background else None
        self._waiting: HookContext | None = None
        self._failed: list[Exception] = []

    def get_eval_scores(self) -> dict[str, float]:
        """Return the numbers of the latest evaluation, by name; empty before the first."""
        return dict(self.eval_scores)

    # In a trainer

    def on_training_start(self, ctx: HookContext) -> None:
        """Warn if the schedule never falls due."""
        if self.task is not None and ctx.loop is not None:
            _warn_if_never_due(self.task, ctx)

    def on_epoch_start(self, ctx: HookContext) -> None:
        """Take what the thread has found, and forget the scores: the weights are about to change."""
        self._deliver(ctx)
        self._forget(ctx)

    def on_epoch_end(self, ctx: HookContext) -> None:
        """Evaluate."""
        if self.task is None or (ctx.worker is not None and ctx.trainer is None):
            return
        self._deliver(ctx)
        if self.evaluated_at == _moment(ctx):
            return
        if self._runner is None:
            self._evaluate(self.task, ctx)
        else:
            self._submit(self.task, ctx, self._runner)

    def on_training_end(self, ctx: HookContext) -> None:
        """Evaluate the end, unless that is done, or the run will go on or has failed."""
        self._deliver(ctx, wait=True)
        is_over = ctx.outcome in ENDS_WELL and ctx.worker is None
        if self.task is not None and is_over and self.evaluated_at != _moment(ctx):
            self._evaluate(self.task, ctx)

    def on_close(self) -> None:
        """End the thread."""
        if self._runner is not None:
            self._runner.close()

    def evaluate_now(self, ctx: HookContext) -> EvaluationResult | None:
        """Evaluate at once, whatever the schedule says; training waits."""
        return None if self.task is None else self._evaluate(self.task, ctx)

    # In a rollout worker

    def should_run(self, context: HookContext) -> bool:
        """Tell whether a worker's step has passed a multiple of the frequency."""
        return context.worker is not None and super().should_run(context)

    def run(self, context: HookContext) -> Mapping[str, float] | None:
        """Evaluate a worker's policy and return the metrics."""
        if self.task is None or context.worker is None:
            return None
        result = self._evaluate(self.task, context)
        return _named(self.task, result)

    # What is saved

    def state_dict(self) -> dict[str, Any]:
        """Return the latest scores and whose they are; a thread that plays is waited for, so that none are missing."""
        if self._waiting is not None:
            self._collect(self._waiting, wait=True)
        return {"eval_scores": dict(self.eval_scores), "evaluated_at": list(self.evaluated_at)}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        self.eval_scores, self.evaluated_at = dict(saved["eval_scores"]), list(saved["evaluated_at"])

    # Inside

    def _evaluate(self, task: EvaluationTask, ctx: HookContext) -> EvaluationResult:
        self.evaluated_at = _moment(ctx)  # whatever comes of it: what failed is not tried again at the end
        player, simulations = self._player(ctx), self._simulations(task, ctx)
        if ctx.loop is None:
            result = self._keep(_play(task, player, simulations, ctx))
        else:
            with ctx.loop.evaluation(task) as metrics:
                ctx.evaluation = result = self._keep(_play(task, player, simulations, ctx))
                metrics.update(_named(task, result))
        self._take(result, ctx)
        return result

    def _submit(self, task: EvaluationTask, ctx: HookContext, runner: BackgroundRunner) -> None:
        player, simulations = self._player(ctx), self._simulations(task, ctx)
        self.evaluated_at, self._waiting = _moment(ctx), ctx

        def play(taken: HookContext) -> EvaluationResult:
            # In a thread the global random streams are training's.
            return evaluate(task, player, simulations, run_seed=taken.state.seed, clocks=taken.state.clocks.reading())

        runner.submit("epoch_end", play, ctx.snapshot())

    def _deliver(self, ctx: HookContext, *, wait: bool = False) -> None:
        """Take over what the thread has found, and raise what went wrong there."""
        self._collect(ctx, wait=wait)
        if self._failed:
            failed, self._failed = self._failed, []
            raise failed[0]

    def _collect(self, ctx: HookContext, *, wait: bool) -> None:
        if self._runner is None:
            return
        for delivery in self._runner.collect(wait=wait):
            if delivery.error is not None:
                self._failed.append(delivery.error)
                continue
            assert self.task is not None
            result = self._keep(delivery.result)  # type: ignore[arg-type]  # what ``play`` returned
            if ctx.loop is not None:
                with ctx.loop.evaluation(result) as metrics:
                    metrics.update(_named(self.task, result))
            self._take(result, ctx)

    def _take(self, result: EvaluationResult, ctx: HookContext) -> None:
        """Make a result known: to whoever asks the hook, the state, the metrics, the statistics, the curriculum."""
        assert self.task is not None
        self._forget(ctx)
        metrics = result.metrics()
        self.result, self.eval_scores = result, {name: each for name, each in metrics.items() if math.isfinite(each)}
        self.evaluated_at = _moment_of(result.clocks)
        named = _named(self.task, result)
        if self.evaluated_at == _moment(ctx):
            prefix = "" if self.task.name == MAIN else f"{self.task.name}/"
            ctx.state.eval_scores |= {f"{prefix}{name}": score for name, score in self.eval_scores.items()}
            ctx.metrics.update(named)
        else:
            log_late(ctx, named, result.clocks)
        log_result(ctx, result)
        for why in result.failures.values():
            ctx.note_failure(EvaluationError(why))
        curriculum = self._curriculum(ctx)
        if self.task.updates_curriculum and curriculum is not None:
            lessons = curriculum.lessons
            told = {name: score for (_, name), score in result.scores.items() if name in lessons}
            curriculum.update_from_evaluation(
                {name: score.for_lesson(getattr(lessons[name], "success_return", 0.0)) for name, score in told.items()}
            )

    def _keep(self, result: EvaluationResult) -> EvaluationResult:
        return result if self._replays is None else replace(result, replays=self._replays.keep(result))

    def _forget(self, ctx: HookContext) -> None:
        """Take the scores of other weights out of the state."""
        if self.task is None:
            return
        prefix = "" if self.task.name == MAIN else f"{self.task.name}/"
        for name in self.eval_scores:
            ctx.state.eval_scores.pop(f"{prefix}{name}", None)

    def _simulations(self, task: EvaluationTask, ctx: HookContext) -> dict[Key, Any]:
        curriculum = self._curriculum(ctx)
        if curriculum is None and task.needs_curriculum and self._may_do_without_curriculum:
            task = replace(task, scope="training")
        seed = derive_seed(ctx.state.seed, "simulations", task.name, *_moment(ctx))
        return task.simulations(curriculum, ctx.lesson_id, seed=seed)

    def _curriculum(self, ctx: HookContext) -> Curriculum | None:
        if self.curriculum is not None:
            return self.curriculum
        return getattr(ctx.trainer, "curriculum", None) or getattr(ctx.worker, "curriculum", None)

    def _player(self, ctx: HookContext) -> Player:
        if self._given_player is not None:
            return self._given_player
        for owner in (ctx.trainer, ctx.worker):
            make: Any = getattr(owner, "player", None)
            if callable(make):
                return make()  # type: ignore[no-any-return]  # the owner's promise
        raise EvaluationError(
            "There is nobody to play for this evaluation: a trainer or worker needs a method player(), or give "
            "EvaluationHook(player=...). To play in a thread, give it background=True, and not the manager."
        )


def _play(task: EvaluationTask, player: Player, simulations: Mapping[Key, Any], ctx: HookContext) -> EvaluationResult:
    with kept_global_random(derive_seed(ctx.state.seed, "global", task.name)):
        return evaluate(task, player, simulations, run_seed=ctx.state.seed, clocks=ctx.state.clocks.reading())


def _named(task: EvaluationTask, result: EvaluationResult) -> dict[str, float]:
    return {f"{task.name}/{name}": value for name, value in result.metrics().items()}


def _moment(ctx: HookContext) -> list[float]:
    return _moment_of(ctx.readings)


def _moment_of(clocks: Mapping[str, float]) -> list[float]:
    """Return the clocks that tell one state of the weights from another."""
    return [clocks[name] for name in ("epochs", "optimizer_steps", "policy_version")]


def is_last_epoch(ctx: HookContext) -> bool:
    """Tell, at the end of an epoch, whether no other will follow, as far as is known by then."""
    if ctx.loop is None:
        return False
    return ctx.state.stop is not None or ctx.loop.workload.is_finished(ctx.loop)


def _warn_if_never_due(task: EvaluationTask, ctx: HookContext) -> None:
    planned: Mapping[str, float] = getattr(ctx.loop and ctx.loop.workload, "planned", {})
    bounds = Rule(task.when, "epochs").bounds(ctx.readings)
    if not bounds or not all(clock in planned and tick > planned[clock] for clock, tick in bounds.items()):
        return
    clock = next(iter(bounds))
    log.warning(
        "the evaluation %r is due '%s', and this run ends at about %d %s: only its end is evaluated. "
        "Evaluate at least every %d %s, or say schedule='never' if the end is enough.",
        task.name, task.when, planned[clock], clock, max(1, int(planned[clock]) // 5), clock,
    )  # fmt: skip
