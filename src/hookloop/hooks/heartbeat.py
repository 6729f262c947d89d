"""Signs of life of every process of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hookloop.core import HookContext
from hookloop.hooks.phase_events import PhaseEvents, running_hook
from hookloop.monitoring.heartbeat import Heartbeat
from hookloop.monitoring.stacks import STACK_SIGNAL, StackSignal
from hookloop.monitoring.ticker import require_seconds


class HeartbeatHook(PhaseEvents):
    """Write what the run is doing into a small file, every ``interval_seconds``, whatever the training thread does.

    A thread of its own writes, on every rank; ranks other than 0 have files of their own (``heartbeat-rank1.json``).
    The file named by the environment variable HOOKLOOP_HEARTBEAT_FILE, if there is one, is touched as often.
    While the run lasts, SIGUSR1 makes the process write the stacks of all its threads.

    Args:
        path: The file; None to touch the other one alone.
        interval_seconds: Seconds between two beats.
        stack_file: Where SIGUSR1 writes the stacks; ``stacks.log`` beside the heartbeat by default.
    """

    ranks = "all"
    on_error = "disable"
    priority = 1000  # first of its stage: what the others do shall be seen

    def __init__(
        self,
        path: str | Path | None = "heartbeat.json",
        interval_seconds: float = 5.0,
        stack_file: str | Path | None = None,
    ) -> None:
        require_seconds("interval_seconds", interval_seconds)
        super().__init__()
        self.path = None if path is None else str(path)
        self.interval_seconds = interval_seconds
        self.stack_file = None if stack_file is None else str(stack_file)
        self._heartbeat: Heartbeat | None = None
        self._stacks: StackSignal | None = None

    def on_restore(self, ctx: HookContext) -> None:
        """Start to beat, before a checkpoint is loaded."""
        super().on_restore(ctx)
        self._start(ctx)

    def on_training_start(self, ctx: HookContext) -> None:
        """Start to beat, if the hook was added to a run that is on."""
        self._start(ctx)

    def on_close(self, ctx: HookContext) -> None:
        """Beat a last time, with the outcome."""
        if self._heartbeat is not None:
            heartbeat, self._heartbeat = self._heartbeat, None
            heartbeat.stack_signal = None
            heartbeat.stop(ctx.outcome or "failed")
        if self._stacks is not None:
            self._stacks.unregister()
            self._stacks = None

    def _start(self, ctx: HookContext) -> None:
        if self._heartbeat is not None:
            return
        rank = 0 if ctx.loop is None else ctx.loop.hooks.ranks.rank

        def look() -> dict[str, Any]:
            hook = running_hook(ctx)
            found: dict[str, Any] = {"clocks": dict(ctx.readings)}
            return found if hook is None else {**found, "event": hook.event, "hook": hook.name, "call": hook.call}

        path = None if self.path is None else Path(self.path)
        heartbeat = Heartbeat(_of_rank(path, rank), self.interval_seconds, trace=self._trace, look=look, rank=rank)
        beside = None if path is None else path.with_name("stacks.log")
        stack_file = _of_rank(beside if self.stack_file is None else Path(self.stack_file), rank)
        if stack_file is not None:
            stacks = StackSignal(stack_file)
            if stacks.register():
                self._stacks = stacks
                heartbeat.stack_signal, heartbeat.stack_file = int(STACK_SIGNAL), str(stack_file.absolute())
        heartbeat.start()
        self._heartbeat = heartbeat


def _of_rank(path: Path | None, rank: int) -> Path | None:
    return path if path is None or rank == 0 else path.with_name(f"{path.stem}-rank{rank}{path.suffix}")
