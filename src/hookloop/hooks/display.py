"""The live display of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any

from hookloop.core import HookContext
from hookloop.core.clocks import ENV_STEPS
from hookloop.display import Block, LiveDisplay, RunView
from hookloop.display.view import RUNNING, STOPPING
from hookloop.hooks.progress import take_out
from hookloop.hooks.run_views import LEAST_SECONDS, RunViews
from hookloop.monitoring.stopwatch import Stopwatch

COLLECT, TRAIN, EVALUATE = "collect", "train", "evaluate"
# The time of hooks on these events lies within a phase, and is theirs.
_INSIDE = {
    COLLECT: ("step_end", "episode_end"),
    TRAIN: ("minibatch_start", "gradients", "optimizer_step", "minibatch_end"),
    EVALUATE: (),
}


class DisplayHook:
    """Show the run on the terminal, live.

    Curves, speed and shares of time begin anew with every attempt. What stands in
    ``ctx.state.pending_progress_updates`` is shown under notes, and taken out once it is on the terminal.

    Args:
        total_steps: What the run is going for, to show how far it is and how long it will take.
        clock: What a step is: a clock such as ``env_steps``.
        run: The run's name.
        recipe: What it was started from.
        device: Where it trains.
        live: What draws; a display on the standard output by default.
        blocks: Called for each view: titled pieces of text to show below the figures, such as a board.
    """

    stage = "publish"
    on_error = "disable"
    interval_seconds = 0.25

    def __init__(
        self,
        total_steps: int | None = None,
        clock: str = ENV_STEPS,
        run: str = "",
        recipe: str = "",
        device: str = "",
        *,
        live: LiveDisplay | None = None,
        blocks: Callable[[], Iterable[Block]] | None = None,
    ) -> None:
        self.total_steps = total_steps
        self.clock = clock
        self.run = run
        self.recipe = recipe
        self.device = device
        self._given = live
        self._live: LiveDisplay | None = live
        self._blocks = blocks
        self._views = RunViews(total_steps, clock, run=run, recipe=recipe, device=device)
        self._watch = Stopwatch()
        self._status = RUNNING
        self._published_seconds = -1.0
        self._epochs_begun = 0
        self._notes: dict[str, object] = {}
        self._flushing: tuple[int, dict[str, object]] | None = None

    def on_training_start(self, ctx: HookContext) -> None:
        """Take the terminal."""
        self._status, self._published_seconds = RUNNING, -1.0
        self._notes.clear()
        self._watch = Stopwatch() if ctx.loop is None else Stopwatch(ctx.loop.hooks.time_ns)
        self._views.begin(ctx)
        # Here and not above: a hook that is only described or copied needs no terminal.
        self._live = self._given if self._given is not None else LiveDisplay()
        readings, clock = ctx.readings, self._views.clock
        self._live.look = lambda: int(readings[clock])
        watch_game: Any = getattr(ctx.trainer, "watch_game", None)  # of a trainer that plays games
        self._live.look_at_game = None if watch_game is None else watch_game().look
        self._publish(ctx)

    def on_epoch_start(self, ctx: HookContext) -> None:
        """Remember the epoch."""
        self._epochs_begun = ctx.state.clocks.epochs

    def on_rollout_start(self) -> None:
        """Measure collection."""
        self._watch.start(COLLECT)

    def on_rollout_end(self) -> None:
        """End collection."""
        self._watch.stop(COLLECT)

    def on_train_phase_start(self) -> None:
        """Measure optimisation."""
        self._watch.start(TRAIN)

    def on_train_phase_end(self) -> None:
        """End optimisation."""
        self._watch.stop(TRAIN)

    def on_evaluation_start(self, ctx: HookContext) -> None:
        """Measure an evaluation, unless a hook does it at the end of an epoch: then it is that hook's time."""
        if ctx.state.clocks.epochs == self._epochs_begun:
            self._watch.start(EVALUATE)

    def on_evaluation_end(self, ctx: HookContext) -> None:
        """End an evaluation."""
        self._watch.stop(EVALUATE)
        self._views.note_evaluation(ctx)

    def on_checkpoint_saved(self, ctx: HookContext) -> None:
        """Remember a durable checkpoint."""
        self._views.note_checkpoint(ctx)

    def on_stop_requested(self, ctx: HookContext) -> None:
        """Show that the run is about to end."""
        self._status = STOPPING
        self._publish(ctx)

    def on_epoch_end(self, ctx: HookContext) -> None:
        """Take the metrics in, and show the run if it is time."""
        self._views.note_epoch(ctx)
        self._take_out_what_is_shown(ctx)
        if ctx.state.clocks.seconds - self._published_seconds >= self.interval_seconds:
            self._publish(ctx)

    def on_training_end(self, ctx: HookContext) -> None:
        """Stop all timers: a run that failed has left some running."""
        self._watch.stop_all()

    def on_close(self, ctx: HookContext) -> None:
        """Show how it ended, and give the terminal back."""
        live = self._live
        if live is None or not live.is_running:
            return
        self._status = ctx.outcome or "failed"
        try:
            self._publish(ctx)
        finally:
            live.stop()
        self._take_out_what_is_shown(ctx)

    def _publish(self, ctx: HookContext) -> None:
        live = self._live
        if live is None:  # before training started
            return
        with ExitStack() as if_it_fails:
            if_it_fails.callback(live.stop)  # a hook that fails may be switched off, and is not told to close
            live.start()
            updates = dict(ctx.state.pending_progress_updates)
            self._notes.update(updates)
            self._flushing = live.publish(self._view(ctx)), updates
            self._published_seconds = ctx.state.clocks.seconds
            if_it_fails.pop_all()

    def _view(self, ctx: HookContext) -> RunView:
        return self._views.view(
            ctx,
            status=self._status,
            phases=self._phases(ctx),
            notes=self._notes,
            blocks=() if self._blocks is None else tuple(self._blocks()),
        )

    def _take_out_what_is_shown(self, ctx: HookContext) -> None:
        if self._live is not None and self._flushing is not None and self._live.has_drawn(self._flushing[0]):
            take_out(ctx, self._flushing[1])
            self._flushing = None

    def _phases(self, ctx: HookContext) -> dict[str, float]:
        """Return the shares of the phases, without the hooks that are called within them."""
        elapsed = self._views.elapsed_here(ctx)
        if elapsed < LEAST_SECONDS:
            return {}
        seconds = {name: self._watch.seconds(name) for name in self._watch.names}
        own: dict[str, float] = {}
        for name, taken in seconds.items():
            outer, _, phase = name.rpartition("/")
            own[phase] = own.get(phase, 0.0) + taken
            if outer:
                own[outer] = own.get(outer, 0.0) - taken
        costs = _costs_by_event(ctx)
        return {
            phase: max(taken - sum(costs.get(event, 0.0) for event in _INSIDE[phase]), 0.0) / elapsed
            for phase, taken in own.items()
        }


def _costs_by_event(ctx: HookContext) -> dict[str, float]:
    found: dict[str, float] = {}
    for cost in ctx.loop.hooks.costs() if ctx.loop is not None else ():
        found[cost.event] = found.get(cost.event, 0.0) + cost.total_ns / 1e9
    return found
