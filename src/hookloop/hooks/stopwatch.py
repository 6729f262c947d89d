"""Where the time of a run goes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from hookloop.core import HookContext, Schedule
from hookloop.core.clocks import ENV_STEPS, canonical_clock
from hookloop.core.schedule_text import as_schedule
from hookloop.monitoring.stopwatch import Stopwatch, shares

Plain = Any

TOTAL = "total"
OTHER = "other"


class StopwatchHook:
    """Measure rollout, training and evaluation, and log their times, their shares and the steps per second.

    What an earlier attempt measured is counted on; what passed between two attempts is not.

    Args:
        log_every: When to log: a schedule, or a text such as "every 10 epochs"; figures per epoch are means since then.
        total_steps: What the run is going for, to log how long it will take.
        clock: What a step is: a clock such as ``env_steps``.
        with_hooks: Log calls, time and failures of every hook too.
        stopwatch: The one to measure with; one of its own, with the loop's clock, by default.
        time_ns: The clock of its own stopwatch.
    """

    on_error = "disable"

    def __init__(
        self,
        log_every: Schedule | str = "every 1 epochs",
        total_steps: int | None = None,
        clock: str = ENV_STEPS,
        with_hooks: bool = False,
        *,
        stopwatch: Stopwatch | None = None,
        time_ns: Callable[[], int] | None = None,
    ) -> None:
        self.schedule = {"epoch_end": as_schedule(log_every)}
        self.log_every = log_every
        self.total_steps = total_steps
        self.clock = canonical_clock(clock)
        self._unit = "epochs" if self.clock == "epochs" else "steps"
        self.with_hooks = with_hooks
        self._given_time_ns = time_ns
        self._time_ns: Callable[[], int] = time_ns if time_ns is not None else time.perf_counter_ns
        self._watch = stopwatch if stopwatch is not None else Stopwatch(self._now_ns)
        self._lap_epochs, self._lap_steps = 0, 0.0
        self._attempt_steps = 0.0

    @property
    def stopwatch(self) -> Stopwatch:
        """The stopwatch, to measure more with: ``with hook.stopwatch.timer("upload"):``."""
        return self._watch

    def on_training_start(self, ctx: HookContext) -> None:
        """Start to measure."""
        if self._given_time_ns is None and ctx.loop is not None:
            self._time_ns = ctx.loop.hooks.time_ns
        self._attempt_steps = ctx.readings[self.clock]
        self._watch.stop_all()
        self._watch.start(TOTAL)

    def on_rollout_start(self) -> None:
        """Measure collection."""
        self._watch.start("rollout")

    def on_rollout_end(self) -> None:
        """End collection."""
        self._watch.stop("rollout")

    def on_train_phase_start(self) -> None:
        """Measure optimisation."""
        self._watch.start("train")

    def on_train_phase_end(self) -> None:
        """End optimisation."""
        self._watch.stop("train")

    def on_evaluation_start(self) -> None:
        """Measure an evaluation."""
        self._watch.start("evaluation")

    def on_evaluation_end(self) -> None:
        """End an evaluation."""
        self._watch.stop("evaluation")

    def on_epoch_end(self, ctx: HookContext) -> None:
        """Log the times since the last time, and in all."""
        epochs, steps = ctx.state.clocks.epochs, ctx.readings[self.clock]
        lap_epochs, lap_steps = epochs - self._lap_epochs, steps - self._lap_steps
        self._lap_epochs, self._lap_steps = epochs, steps
        lap = self._watch.lap()
        metrics = {**_per_epoch(lap, max(lap_epochs, 1)), **self._cumulative(), **self._overview(ctx)}
        if lap.get(TOTAL, 0.0) > 0 and lap_steps > 0:
            metrics[f"overview/{self._unit}_per_second"] = lap_steps / lap[TOTAL]
        if self.with_hooks and ctx.loop is not None:
            metrics.update(_of_hooks(ctx))
        ctx.log(metrics)

    def on_training_end(self) -> None:
        """Stop all timers: a run that failed has left some running."""
        self._watch.stop_all()

    def state_dict(self) -> dict[str, Plain]:
        """Return the times, and where the lap began."""
        return {"stopwatch": self._watch.state_dict(), "lap_epochs": self._lap_epochs, "lap_steps": self._lap_steps}

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on from saved times."""
        self._watch.load_state_dict(saved["stopwatch"])
        self._lap_epochs, self._lap_steps = saved["lap_epochs"], saved["lap_steps"]

    def _now_ns(self) -> int:
        return self._time_ns()

    def _cumulative(self) -> dict[str, float]:
        times = _parts({name: self._watch.seconds(name) for name in self._watch.names})
        return {f"timing_cumulative/sec/{name}": seconds for name, seconds in times.items()}

    def _overview(self, ctx: HookContext) -> dict[str, float]:
        steps = ctx.readings[self.clock]
        metrics: dict[str, float] = {
            "metric/agent_step": ctx.state.agent_step,
            "metric/epoch": ctx.state.epoch,
            "metric/total_time": self._watch.seconds(TOTAL),
            "metric/train_time": self._watch.seconds(f"{TOTAL}/train"),
        }
        mean = self._watch.rate(TOTAL, steps)
        if mean is not None and steps > 0:
            metrics[f"overview/{self._unit}_per_second_mean"] = mean
        if self.total_steps is not None:
            eta = self._watch.eta_seconds(TOTAL, steps, self.total_steps, done_before=self._attempt_steps)
            if eta is not None:
                metrics["overview/eta_seconds"] = eta
        return metrics


def _parts(seconds: Mapping[str, float]) -> dict[str, float]:
    """Return the whole, its named parts, and what is left of it."""
    parts = {
        name.removeprefix(f"{TOTAL}/"): taken
        for name, taken in seconds.items()
        if name.count("/") == 1 and name.startswith(f"{TOTAL}/")
    }
    whole = seconds.get(TOTAL, 0.0)
    return {TOTAL: whole, **parts, OTHER: max(whole - sum(parts.values()), 0.0)}


def _per_epoch(lap: Mapping[str, float], epochs: int) -> dict[str, float]:
    times = _parts(lap)
    metrics = {
        f"timing_per_epoch/msec/{'epoch' if name == TOTAL else name}": seconds * 1e3 / epochs
        for name, seconds in times.items()
    }
    found = shares(lap, TOTAL)
    if found:
        found[OTHER] = max(1.0 - sum(found.values()), 0.0)
    return {**metrics, **{f"timing_per_epoch/frac/{name}": share for name, share in found.items()}}


def _of_hooks(ctx: HookContext) -> dict[str, float]:
    assert ctx.loop is not None
    metrics: dict[str, float] = {}
    for cost in ctx.loop.hooks.costs():
        if cost.calls:
            metrics[f"timing_hooks/{cost.hook}/{cost.event}/calls"] = cost.calls
            metrics[f"timing_hooks/{cost.hook}/{cost.event}/msec"] = cost.total_ns / 1e6
    for hook, failures in ctx.state.failures.items():
        metrics[f"timing_hooks/{hook}/failures"] = failures.count
    return metrics
