"""Everything there is to see of a run, in one registration."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookloop.core import CompositeHook, HookContext, PeriodicHook, Schedule
from hookloop.core.clocks import ENV_STEPS
from hookloop.hooks.figures import FiguresHook
from hookloop.hooks.gradient_stats import GradientStatsHook
from hookloop.hooks.heartbeat import HeartbeatHook
from hookloop.hooks.monitor import MonitorHook
from hookloop.hooks.progress import ProgressHook
from hookloop.hooks.stats import StatsHook
from hookloop.hooks.stopwatch import StopwatchHook
from hookloop.hooks.trackers import TrackerHook
from hookloop.trackers import WandbTracker

if TYPE_CHECKING:
    from hookloop.monitoring.stopwatch import Stopwatch
    from hookloop.stats import StatsClient

Live = Any
Collector = Callable[[HookContext], Mapping[str, Live] | None]


class MetricsHook(CompositeHook):
    """Figures, times, gradients, the machine, statistics, trackers, progress and heartbeat: a bundle of small hooks.

    Each keeps its own schedule, ranks and failure policy. What is not configured is left out.

    Args:
        wandb_run: A run of W&B to log to, as it is. It is told what the statistics hold, at its own pace.
        stats_client: Where the statistics go; None keeps none beyond the run.
        timer: The stopwatch to measure with; one of its own by default.
        verbose: Write a line of progress every second.
        frequency: Steps between two calls of the ``collectors``.
        collectors: Functions of the context whose results are logged: your own metrics.
        log_every: When to log figures and times, such as "every 10 epochs"; every epoch by default.
        times_every: When to log times, if not then.
        gradients: When to look at the gradients; None never does.
        monitor_seconds: Seconds between two rows about the machine; None leaves it alone.
        heartbeat_file: Where to write signs of life; without it, only into the file that the environment names.
        total_steps: What the run is going for, to tell how long it will take.
        clock: What a step is: a clock such as ``env_steps``.
        trackers: A ``TrackerHook`` for more trackers than ``wandb_run``.
        progress: What shows progress, in place of a line.
        about: ``name``, ``recipe``, ``seed``, ``config`` and ``tags`` of the run, and other arguments of ``StatsHook``.
    """

    def __init__(
        self,
        wandb_run: Live = None,
        stats_client: StatsClient | Callable[[], StatsClient] | None = None,
        timer: Stopwatch | None = None,
        verbose: bool = True,
        *,
        frequency: int = 1,
        collectors: Sequence[Collector] = (),
        log_every: Schedule | str = "every 1 epochs",
        times_every: Schedule | str | None = None,
        gradients: Schedule | str | None = "every 100 optimizer_steps",
        monitor_seconds: float | None = 10.0,
        heartbeat_file: str | Path | None = None,
        total_steps: int | None = None,
        clock: str = ENV_STEPS,
        trackers: TrackerHook | None = None,
        progress: object | None = None,
        **about: Any,
    ) -> None:
        children: dict[str, object | None] = {
            "heartbeat": HeartbeatHook(heartbeat_file),
            "figures": FiguresHook(log_every),
            "stopwatch": StopwatchHook(times_every or log_every, total_steps, clock, stopwatch=timer),
            "collect": CollectHook(frequency, list(collectors)) if collectors else None,
            "gradients": None if gradients is None else GradientStatsHook(gradients, per_parameter=False),
            "machine": None if monitor_seconds is None else MonitorHook(monitor_seconds),
        }
        if wandb_run is not None:
            stats_client = stats_client() if callable(stats_client) else stats_client or self._passing_stats()
            children["wandb"] = _told(wandb_run, stats_client)
        children["trackers"] = trackers
        children["stats"] = None if stats_client is None else StatsHook(stats_client, **about)
        if progress is None and verbose:
            progress = ProgressHook(total_steps=total_steps, clock=clock)
        children["progress"] = progress
        present = {name: child for name, child in children.items() if child is not None}
        for name, child in present.items():
            vars(child)["name"] = name  # within the bundle, by what it does
        super().__init__(present.values(), name="metrics")

    def _passing_stats(self) -> StatsClient:
        """Return statistics that are there for trackers alone, and are gone with the hook."""
        from hookloop.stats import StatsClient

        folder = tempfile.mkdtemp(prefix="hookloop-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return StatsClient(Path(folder) / "stats.sqlite", run_id="run")


def _told(wandb_run: Live, stats_client: StatsClient) -> TrackerHook:
    tracker = WandbTracker(Path(), run=wandb_run)
    return TrackerHook({"wandb": tracker}, stats_url=stats_client.url, run_id=stats_client.run_id)


class CollectHook(PeriodicHook):
    """Log what functions of the context return, every ``frequency`` steps."""

    name = "collect"
    on_error = "disable"

    def __init__(self, frequency: int, collectors: Sequence[Collector], start_step: int = 0) -> None:
        super().__init__(frequency, start_step)
        self._collectors = list(collectors)

    def run(self, context: HookContext) -> Mapping[str, Live] | None:
        """Ask all of them."""
        found: dict[str, Live] = {}
        for collector in self._collectors:
            found.update(collector(context) or {})
        return found or None
