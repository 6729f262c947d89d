"""The statistics of a run, as trackers are told them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookloop.trackers.base import TrackedRun

if TYPE_CHECKING:
    from hookloop.stats import StatsReader, StatsStore


class StatsSource:
    """Reads the metrics of a run from its statistics, and keeps the cursor of one tracker there.

    Args:
        stats_url: The database, or its file.
        run_id: The run.
        tracker: The tracker's name.
    """

    def __init__(self, stats_url: str | Path, run_id: str, tracker: str) -> None:
        self._stats_url, self._run_id, self._tracker = stats_url, run_id, tracker
        self._reader: StatsReader | None = None
        self._store: StatsStore | None = None

    def run(self) -> TrackedRun:
        """Return what the statistics know about the run."""
        row = self._opened().run(self._run_id)
        known = {name: row[name] for name in ("name", "recipe", "seed", "created", "status")}
        return TrackedRun(self._run_id, **known, config=row["config"] or {}, tags=row["tags"] or ())

    def cursor(self) -> int:
        """Return the saved cursor."""
        return self._opened().cursor(self._run_id, self._tracker)

    def rows_after(self, cursor: int, limit: int) -> tuple[list[dict[str, Any]], int]:
        """Return the points of whole epochs after a cursor, and the next cursor."""
        return self._opened().rows_after(self._run_id, cursor, limit)

    def save_cursor(self, cursor: int) -> None:
        """Save the cursor and wait for the disk."""
        from hookloop.stats import StatsStore

        if self._store is None:
            self._store = StatsStore(self._stats_url, run_id=self._run_id)
        self._store.save_cursor(self._tracker, cursor)
        self._store.flush()

    def close(self) -> None:
        """Let go of the database."""
        store, self._store = self._store, None
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()
        if store is not None:
            store.close()

    def _opened(self) -> StatsReader:
        from hookloop.stats import StatsReader

        if self._reader is None:
            self._reader = StatsReader(self._stats_url)
        return self._reader
