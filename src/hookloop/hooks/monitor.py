"""What the machine does while a run lasts."""

from __future__ import annotations

from pathlib import Path

from hookloop.core import Every, HookContext
from hookloop.errors import RegistrationError
from hookloop.monitoring.memory import MemoryMonitor
from hookloop.monitoring.system import SystemMonitor
from hookloop.monitoring.ticker import require_seconds

WATCHED = ("model", "optimizer", "experience")


class MonitorHook:
    """Log CPU, memory, disk, temperatures and GPUs, and the memory of model, optimizer and experience.

    A thread samples from the start of training until it has ended, however it ends.

    Args:
        interval_seconds: Seconds of training between two rows of metrics.
        sample_seconds: Seconds between two samples.
        history: How many samples a row is made of at most: their means and maxima.
        disk_path: The place whose disk is watched.
        cost_per_hour: What an hour of this machine costs, to log what the run has cost.
    """

    on_error = "disable"

    def __init__(
        self,
        interval_seconds: float = 10.0,
        sample_seconds: float = 1.0,
        history: int = 100,
        disk_path: str | Path = ".",
        cost_per_hour: float | None = None,
    ) -> None:
        require_seconds("interval_seconds", interval_seconds)
        require_seconds("sample_seconds", sample_seconds)
        if isinstance(history, bool) or not isinstance(history, int) or history < 1:
            raise RegistrationError(f"history must be at least 1 sample, got {history!r}.")
        self.schedule = {"epoch_end": Every(interval_seconds, "seconds")}
        self.interval_seconds = interval_seconds
        self.sample_seconds = sample_seconds
        self.history = history
        self.disk_path = str(disk_path)
        self.cost_per_hour = cost_per_hour
        self._system: SystemMonitor | None = None
        self._memory = MemoryMonitor()

    def on_training_start(self, ctx: HookContext) -> None:
        """Start to sample."""
        self._system = SystemMonitor(self.sample_seconds, self.history, disk_path=self.disk_path)
        for name in WATCHED:
            if getattr(ctx, name) is not None:
                self._memory.watch(name, getattr(ctx, name))
        self._system.start()

    def on_epoch_end(self, ctx: HookContext) -> None:
        """Log what was sampled."""
        if self._system is None:
            return
        metrics: dict[str, float] = {f"monitor/{name}": value for name, value in self._system.summary().items()}
        if self.cost_per_hour is not None:
            metrics["monitor/cost"] = ctx.state.clocks.seconds / 3600 * self.cost_per_hour
        for name, size in self._memory.sizes().items():
            metrics[f"trainer_memory/{name}_bytes"] = size
        ctx.log(metrics)

    def on_close(self) -> None:
        """Stop to sample."""
        if self._system is not None:
            self._system.stop()
            self._system = None
        self._memory.forget()
