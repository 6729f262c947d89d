"""The store as training uses it: nothing that goes wrong with the database stops the run."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hookloop.stats.database import brief
from hookloop.stats.log import Reading
from hookloop.stats.store import (
    BATCH_ROWS,
    CLOSE_SECONDS,
    FLUSH_SECONDS,
    MOST_QUEUED_ROWS,
    StatsStore,
)
from hookloop.stats.writer import DATABASE_ERRORS

log = logging.getLogger("hookloop.stats")


class StatsClient(StatsStore):
    """A store that does not wait for its database and raises nothing when something is logged.

    While the database cannot be opened or written, rows wait in memory, up to ``most_queued_rows``, and it is tried
    again after growing pauses; ``health()`` says how it stands. Each kind of failure is logged once. ``flush`` alone
    raises: whoever promises that rows are durable must know when they are not.
    """

    def __init__(
        self,
        url_or_path: str | Path,
        *,
        run_id: str,
        batch_rows: int = BATCH_ROWS,
        flush_seconds: float = FLUSH_SECONDS,
        most_queued_rows: int = MOST_QUEUED_ROWS,
        most_bytes: int | None = None,
        wall_time: Callable[[], float] = time.time,
    ) -> None:
        self.failures: Counter[str] = Counter()
        """How often each kind of error has occurred, by the name of its class."""
        super().__init__(
            url_or_path,
            run_id=run_id,
            batch_rows=batch_rows,
            flush_seconds=flush_seconds,
            most_queued_rows=most_queued_rows,
            most_bytes=most_bytes,
            opens_late=True,
            on_failure=self._note,
            wall_time=wall_time,
        )

    def begin_attempt(self, attempt: int, clocks: Reading, resumed_from: int | None = None, **about: Any) -> None:
        """Open an attempt as soon as the database can be written; rows logged meanwhile come after it."""
        try:
            super().begin_attempt(attempt, clocks, resumed_from, **about)
        except DATABASE_ERRORS as error:
            self._note(error)

    def end_attempt(self, outcome: str) -> None:
        """Record how the attempt ended, as soon as the database can be written."""
        try:
            super().end_attempt(outcome)
        except DATABASE_ERRORS as error:
            self._note(error)

    def close(self, timeout: float | None = CLOSE_SECONDS) -> None:
        """Write what is queued and let go of the database; what cannot be written by now is lost, and logged."""
        try:
            super().close(timeout)
        except DATABASE_ERRORS as error:
            lost = self.health().queued
            log.warning(
                "The statistics of %s end here, %d rows could not be written: %s", self.run_id, lost, brief(error)
            )

    def _note(self, error: BaseException) -> None:
        kind = type(error).__name__
        self.failures[kind] += 1
        if self.failures[kind] == 1:
            log.warning("The statistics cannot be written, and training goes on; it is tried again: %s", brief(error))
