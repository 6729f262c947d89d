"""Everything a run reports, in its statistics."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hookloop.core import HookContext
from hookloop.errors import StatsError

if TYPE_CHECKING:
    from hookloop.stats import StatsClient

log = logging.getLogger("hookloop.hooks.stats")

FLUSH_SECONDS = 30.0
COSTS_SECONDS = 2.0  # between two looks at what the hooks have cost so far


class StatsHook:
    """Write metrics, episodes, checkpoints, events, failures and hook costs to the statistics of the run.

    Rows are durable before the checkpoint they belong to is; after a resume those beyond it move aside.

    Args:
        stats_client: Where to; it never stops training. Or a function that opens one, called when training starts.
        keeps_episodes: Write a row for every finished episode, of which there may be a thousand in an epoch.
        about: ``name``, ``recipe``, ``seed``, ``config`` and ``tags`` of the run.
    """

    name = "stats"
    stage = "report"
    on_error = "disable"

    def __init__(
        self, stats_client: StatsClient | Callable[[], StatsClient], *, keeps_episodes: bool = True, **about: Any
    ) -> None:
        self._open: Callable[[], StatsClient] = stats_client if callable(stats_client) else lambda: stats_client
        self._keeps_episodes = keeps_episodes
        self._about = about
        self._opened: StatsClient | None = None
        self._costs_at_seconds = 0.0

    def on_training_start(self, ctx: HookContext) -> None:
        """Open an attempt, and have rows made durable before each checkpoint."""
        self._opened = ctx.services["stats_client"] = self._open()
        self._costs_at_seconds = ctx.state.clocks.seconds
        checkpoints = ctx.services.get("checkpoints")
        restored = None if checkpoints is None else checkpoints.restored
        resumed_from = None if restored is None else restored.step
        self._client.begin_attempt(ctx.state.attempt, ctx.state.clocks, resumed_from, **self._about)
        if checkpoints is not None:
            checkpoints.before_write(self._flush)

    def on_epoch_end(self, ctx: HookContext) -> None:
        """Log what this epoch has brought."""
        clocks = ctx.state.clocks.reading()
        self._client.log_metrics(ctx.drain_metrics())
        self._client.log_metrics([{"hook": "", "event": ctx.event, "clocks": clocks, "values": ctx.metrics}])
        if self._keeps_episodes:
            self._client.log_episodes(_episodes(ctx, clocks))
        self._client.log_epoch(clocks)
        if clocks["seconds"] - self._costs_at_seconds >= COSTS_SECONDS:
            self._log_costs(ctx)

    def on_checkpoint_saved(self, ctx: HookContext) -> None:
        """Log a durable checkpoint."""
        manifest = ctx.checkpoint.manifest
        self._client.log_checkpoint(
            manifest.name,
            manifest.clocks,
            checkpoint_id=ctx.checkpoint.id,
            uri=ctx.checkpoint.uri,
            kind=manifest.kind,
            size_bytes=manifest.total_bytes,
            metrics=manifest.metrics,
            exactness=manifest.exactness,
            inexact_because=manifest.inexact_because,
        )

    def on_stop_requested(self, ctx: HookContext) -> None:
        """Log who asked the run to stop."""
        if ctx.state.stop is not None:
            self._client.log_event(ctx.state.stop.by, "stop", ctx.state.stop.reason, ctx.state.clocks)

    def on_hook_error(self, ctx: HookContext) -> None:
        """Log that another hook failed."""
        if self._opened is None:  # before training started
            return
        self._client.log_event(ctx.failed_hook or "", "hook_error", repr(ctx.exception), ctx.state.clocks)

    def on_exception(self, ctx: HookContext) -> None:
        """Log what ended the run."""
        if self._opened is None:
            return
        self._client.log_event("run", "exception", repr(ctx.exception), ctx.state.clocks)

    def on_training_end(self, ctx: HookContext) -> None:
        """Log what the hooks have cost, and how the attempt ended, if it began: a resume may fail before."""
        if self._opened is None:
            return
        self._client.log_metrics(ctx.drain_metrics())
        self._log_costs(ctx)
        self._client.end_attempt(ctx.outcome or "failed")

    def on_close(self, ctx: HookContext) -> None:
        """Write what is left."""
        ctx.services.pop("stats_client", None)
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _log_costs(self, ctx: HookContext) -> None:
        self._costs_at_seconds = ctx.state.clocks.seconds
        if ctx.loop is not None:
            self._client.log_hook_costs(ctx.loop.hooks.costs())
        self._client.log_hook_failures(ctx.state.failures)

    @property
    def _client(self) -> StatsClient:
        if self._opened is None:
            raise StatsError("The statistics are written between the start and the end of training.")
        return self._opened

    def _flush(self) -> None:
        """Make all rows durable; called by whoever is about to write a checkpoint, in its thread."""
        try:
            self._client.flush(FLUSH_SECONDS)
        except StatsError as error:
            log.warning("a checkpoint is written before its statistics are: %s", error)


def _episodes(ctx: HookContext, clocks: dict[str, float]) -> list[dict[str, Any]]:
    found = ctx.state.rollout_stats
    returns, lengths = found.get("return", []), found.get("length", [])
    if len(returns) != len(lengths):
        return []
    return [
        {"return": return_, "length": length, "clocks": clocks}
        for return_, length in zip(returns, lengths, strict=True)
    ]
