"""The trackers of a run, fed from its statistics."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hookloop.core import HookContext
from hookloop.errors import ConfigError
from hookloop.hooks.stats_source import StatsSource
from hookloop.storage.lock import RunLock
from hookloop.trackers import Replay, Tracker, TrackerFeed, TrackerHealth
from hookloop.trackers.feed import FINISH_SECONDS, INTERVAL_SECONDS

LOCKS_FOLDER = "trackers"


class TrackerHook:
    """Tell trackers what a ``StatsHook`` has written, each in a thread of its own; training waits for none of them.

    Whatever a tracker has not been told when training ends, ``hookloop sync`` sends later. Without trackers the hook
    does nothing.

    Args:
        trackers: The trackers by name, or a function that makes them, called when training starts.
        stats_url: The run's statistics: the database, or its file.
        run_id: The run, as the statistics know it.
        folder: The run's folder, in which one process at a time locks a tracker; None for no lock.
        finish_seconds: How long the trackers may take for the rest when training has ended, all together.
        interval_seconds: Seconds between two looks at the statistics.
    """

    name = "trackers"
    stage = "publish"
    on_error = "disable"

    def __init__(
        self,
        trackers: Mapping[str, Tracker] | Callable[[], Mapping[str, Tracker]],
        *,
        stats_url: str | Path,
        run_id: str,
        folder: Path | None = None,
        finish_seconds: float = FINISH_SECONDS,
        interval_seconds: float = INTERVAL_SECONDS,
    ) -> None:
        self._trackers = trackers
        self._stats_url, self._run_id, self._folder = stats_url, run_id, folder
        self._finish_seconds, self._interval_seconds = finish_seconds, interval_seconds
        self._feeds: list[TrackerFeed] = []

    def health(self) -> list[TrackerHealth]:
        """Return how each tracker stands; ``ctx.services["trackers"]`` is this hook."""
        return [feed.health() for feed in self._feeds]

    def on_training_start(self, ctx: HookContext) -> None:
        """Start a thread for each tracker."""
        trackers = self._trackers() if callable(self._trackers) else self._trackers
        size = _parameters_of(ctx.model)
        for name, tracker in trackers.items():
            source = StatsSource(self._stats_url, self._run_id, name)
            lock = None if self._folder is None else tracker_lock(self._folder, name)
            replay = Replay(tracker, source, lock=lock, model_parameters=size)
            feed = TrackerFeed(name, replay, interval_seconds=self._interval_seconds)
            feed.start()
            self._feeds.append(feed)
        ctx.services["trackers"] = self

    def on_epoch_end(self, ctx: HookContext) -> None:
        """Say that there is something to send."""
        epochs = ctx.state.clocks.epochs
        for feed in self._feeds:
            feed.wake(epochs)
            if feed.stop_reason is not None:
                ctx.request_stop(feed.stop_reason)

    def on_training_end(self, ctx: HookContext) -> None:
        """Have the rest sent, for a limited time."""
        for feed in self._feeds:
            feed.end(ctx.outcome or "failed")
        until = time.monotonic() + self._finish_seconds
        for feed in self._feeds:
            feed.join(until - time.monotonic())

    def on_close(self) -> None:
        """Leave the threads to themselves: they have ended, or hang in a tracker."""
        for feed in self._feeds:
            feed.end("failed")
        self._feeds = []


def tracker_lock(folder: Path, name: str) -> RunLock:
    """Return the lock that whoever tells a tracker about a run must hold."""
    if Path(name).name != name:
        raise ConfigError(f"A tracker's name names a folder, and so must have no slashes or dots alone, got {name!r}.")
    return RunLock(folder / LOCKS_FOLDER / name)


def _parameters_of(model: Any) -> int | None:
    return sum(each.numel() for each in model.parameters()) if hasattr(model, "parameters") else None
