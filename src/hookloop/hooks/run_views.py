"""From the context of a run to a view of it, for hooks that show where it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hookloop.core import HookContext
from hookloop.core.clocks import ENV_STEPS, canonical_clock
from hookloop.display import Block, Curve, Evaluation, Failure, History, Pace, RunView, SavedCheckpoint, TrackerHealth
from hookloop.display.view import EPOCHS, RUNNING

Plain = Any

LEAST_SECONDS = 0.5  # before that a share says nothing
_MOST_CURVES = 100


class RunViews:
    """Makes views of a run. Speed, shares of time and curves are those of this attempt.

    Args:
        total_steps: What the run is going for.
        clock: What a step is: a clock such as ``env_steps``.
        about: What the run is: ``run``, ``recipe``, ``device``.
    """

    def __init__(self, total_steps: int | None = None, clock: str = ENV_STEPS, **about: str) -> None:
        self.total_steps = total_steps
        self.clock = canonical_clock(clock)
        self._about: dict[str, Any] = dict(about)
        self._forget()

    def begin(self, ctx: HookContext) -> None:
        """Begin with an attempt."""
        self._forget()
        clocks = ctx.state.clocks
        self._begun_seconds = clocks.refresh_seconds()
        self._costs_before = _costs(ctx)  # of the restore, which is over
        self._pace.add(self._begun_seconds, ctx.readings[self.clock])
        self._about.update(num_envs=_num_envs(ctx), parameters=_parameters(ctx))
        restored = getattr(ctx.services.get("checkpoints"), "restored", None)
        if restored is not None:
            self._checkpoint = SavedCheckpoint(restored.name, restored.manifest.step, self._begun_seconds)

    def note_epoch(self, ctx: HookContext) -> None:
        """Take the metrics of an epoch into the curves."""
        curves = self._curves
        for name, value in ctx.metrics.items():
            if isinstance(value, int | float):
                history = curves.get(name)
                if history is None:
                    if len(curves) >= _MOST_CURVES:
                        continue
                    history = curves[name] = History()
                history.add(value)

    def note_evaluation(self, ctx: HookContext) -> None:
        """Remember at which step the scores were reached that are found at the next view."""
        self._evaluated_step = int(ctx.readings[self.clock])

    def note_checkpoint(self, ctx: HookContext) -> None:
        """Remember a durable checkpoint."""
        saved = ctx.checkpoint
        self._checkpoint = SavedCheckpoint(saved.name, saved.manifest.step, ctx.state.clocks.refresh_seconds())

    def elapsed_here(self, ctx: HookContext) -> float:
        """Return the seconds of this attempt."""
        return ctx.state.clocks.seconds - self._begun_seconds

    def view(
        self,
        ctx: HookContext,
        *,
        status: str = RUNNING,
        phases: Mapping[str, float] | None = None,
        notes: Mapping[str, object] | None = None,
        blocks: tuple[Block, ...] = (),
    ) -> RunView:
        """Return the run as it is now."""
        state, step = ctx.state, int(ctx.readings[self.clock])
        seconds = state.clocks.refresh_seconds()
        self._pace.add(seconds, step)
        return RunView(
            **self._about,
            attempt=state.attempt,
            status=status,
            reason="" if state.stop is None else state.stop.reason,
            epoch=state.epoch,
            step=step,
            total_steps=self.total_steps,
            unit=EPOCHS if self.clock == EPOCHS else "steps",
            episodes=state.clocks.episodes,
            steps_per_second=self._pace.speed(),
            elapsed_seconds=seconds,
            eta_seconds=self._pace.eta_seconds(self.total_steps),
            phases=phases or {},
            hooks=self._hook_shares(ctx),
            curves={name: Curve(history.latest, history.points()) for name, history in self._curves.items()},
            evaluations=self._scores(ctx, step),
            checkpoint=self._checkpoint,
            trackers=_trackers(ctx.services),
            failures=tuple(
                Failure(hook, each.count, each.last_error, each.is_disabled) for hook, each in state.failures.items()
            ),
            notes={**_texts(ctx.metrics), **(notes or {})},
            blocks=blocks,
        )

    def _forget(self) -> None:
        self._begun_seconds = 0.0
        self._costs_before: dict[str, int] = {}
        self._pace = Pace()
        self._curves: dict[str, History] = {}
        self._evaluations: dict[str, Evaluation] = {}
        self._evaluated_step: int | None = None
        self._checkpoint: SavedCheckpoint | None = None

    def _hook_shares(self, ctx: HookContext) -> dict[str, float]:
        elapsed = self.elapsed_here(ctx)
        if elapsed < LEAST_SECONDS:
            return {}
        before = self._costs_before
        return {hook: max(total_ns - before.get(hook, 0), 0) / 1e9 / elapsed for hook, total_ns in _costs(ctx).items()}

    def _scores(self, ctx: HookContext, step: int) -> tuple[Evaluation, ...]:
        at = step if self._evaluated_step is None else self._evaluated_step
        for name, score in ctx.state.eval_scores.items():
            if not isinstance(score, int | float) or name in self._curves:  # a curve tells more than its last point
                continue
            known = self._evaluations.get(name)
            if known is not None and known.score == score and known.step == at:
                continue
            best, best_step = (score, at) if known is None or score >= known.best else (known.best, known.best_step)
            self._evaluations[name] = Evaluation(name, score, at, best, best_step)
        return tuple(self._evaluations.values())


def _costs(ctx: HookContext) -> dict[str, int]:
    """Return the nanoseconds that each hook has taken so far in this process."""
    found: dict[str, int] = {}
    for cost in ctx.loop.hooks.costs() if ctx.loop is not None else ():
        if cost.total_ns:
            found[cost.hook] = found.get(cost.hook, 0) + cost.total_ns
    return found


def _trackers(services: Mapping[str, Any]) -> tuple[TrackerHealth, ...]:
    """Return how every service is that can say it; one service may speak for several places."""
    found: list[TrackerHealth] = []
    for name, service in services.items():
        health: Callable[[], Any] | None = getattr(service, "health", None)
        if not callable(health):
            continue
        said = health()
        for how in said if isinstance(said, list) else [said]:
            error, state = str(getattr(how, "last_error", "")), str(getattr(how, "state", ""))
            dropped = int(getattr(how, "dropped", 0))
            queued = int(getattr(how, "queued", getattr(how, "epochs_behind", 0)))
            is_well = not error and not dropped and state in ("", "ok")
            found.append(
                TrackerHealth(
                    str(getattr(how, "name", name.removesuffix("_client"))), is_well, queued, dropped, error, state
                )
            )
    return tuple(found)


def _texts(metrics: Mapping[str, Any]) -> dict[str, object]:
    return {name: value for name, value in metrics.items() if isinstance(value, str)}


def _num_envs(ctx: HookContext) -> int | None:
    found = getattr(getattr(ctx.trainer, "envs", None), "num_envs", None)
    return found if isinstance(found, int) else None


def _parameters(ctx: HookContext) -> int | None:
    parameters: Callable[[], Any] | None = getattr(ctx.model, "parameters", None)
    return sum(each.numel() for each in parameters()) if callable(parameters) else None
