"""The end of the workers."""

from __future__ import annotations

from hookloop.rl.collector import Collector


class WorkersHook:
    """Ends the workers when a run is over, however it ended; the next run of the same trainer starts new ones."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def on_close(self) -> None:
        """End the workers."""
        self._collector.close()
