"""The statistics of one run, as its only writer sees them."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from hookloop.stats.attempts import OF_THE_RUN, close_attempt, end_of_run, move_aside, open_attempt
from hookloop.stats.database import require_driver
from hookloop.stats.log import Reading, StatsLog, reading_of
from hookloop.stats.rows import as_json, text, whole
from hookloop.stats.writer import Health, Ticket, Writer

if TYPE_CHECKING:
    from sqlalchemy import Connection

Plain = Any

BATCH_ROWS = 5_000
FLUSH_SECONDS = 1.0
MOST_QUEUED_ROWS = 500_000
CLOSE_SECONDS = 30.0


class StatsStore(StatsLog):
    """Writes the statistics of one run; the calls that log only append to a queue, and a thread does the rest.

    There is one store per run at a time: whoever holds the run's lock. Readers may be anywhere.

    Args:
        url_or_path: An SQLite file, made if need be, or a URL such as ``postgresql+psycopg://user@host/name``.
        run_id: The run.
        batch_rows: Rows per transaction, about.
        flush_seconds: Rows wait no longer than this for others.
        most_queued_rows: What may wait while the database cannot be written; more is dropped and counted.
        most_bytes: Largest size of an SQLite file; None leaves it to the disk.
        opens_late: Do not wait for the database: failing to open it is like failing to write, and is tried again.
        on_failure: Told of every failed transaction, in the thread.
        wall_time: What time it is, in seconds since 1970.
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
        opens_late: bool = False,
        on_failure: Callable[[BaseException], None] | None = None,
        wall_time: Callable[[], float] = time.time,
    ) -> None:
        if not run_id:
            raise ValueError("A store writes for one run; give its run_id, got an empty text.")
        if batch_rows < 1 or flush_seconds <= 0 or most_queued_rows < batch_rows:
            raise ValueError(
                "A store needs batch_rows >= 1, flush_seconds > 0 and most_queued_rows >= batch_rows, "
                f"got {batch_rows}, {flush_seconds} and {most_queued_rows}."
            )
        require_driver(url_or_path)
        self.run_id = run_id
        self.url = url_or_path
        self._opens_late = opens_late
        self._writer = Writer(
            url_or_path,
            run_id=run_id,
            most_bytes=most_bytes,
            batch_rows=batch_rows,
            flush_seconds=flush_seconds,
            most_queued_rows=most_queued_rows,
            on_failure=on_failure,
        )
        super().__init__(self._writer.put, wall_time)
        self._has_begun = False
        self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # Attempts

    @property
    def attempt(self) -> int:
        """The number of the running attempt; the database's own where a killed one had taken the number."""
        return self._writer.attempt

    def begin_attempt(self, attempt: int, clocks: Reading, resumed_from: int | None = None, **about: Plain) -> None:
        """Open an attempt and move every row beyond the clocks aside, in one transaction.

        Args:
            attempt: Its number; the next free one is taken if it is in use.
            clocks: Where training begins or goes on.
            resumed_from: The step of the checkpoint it goes on from.
            about: ``name``, ``recipe``, ``seed``, ``config`` and ``tags`` of the run; ``hostname``, ``pid`` and
                ``versions`` of the process.
        """
        reading = reading_of(clocks)
        run = {name: _of_run(name, about.pop(name)) for name in OF_THE_RUN if name in about}
        row = {
            "attempt": int(attempt),
            "started": self._wall_time(),
            "resumed_from": None if resumed_from is None else whole(resumed_from),
            "epoch": whole(reading.get("epochs", 0)),
            "env_steps": whole(reading.get("env_steps", 0)),
            "hostname": text(about.pop("hostname", None) or platform.node()),
            "pid": int(about.pop("pid", None) or os.getpid()),
            "versions": as_json({"python": platform.python_version(), **about.pop("versions", {}), **about}),
        }
        limits = {name: whole(value) for name, value in reading.items() if name != "seconds"}
        limits.setdefault("epochs", 0)

        def begin(connection: Connection) -> None:
            self._writer.attempt = open_attempt(connection, self.run_id, row, run)
            move_aside(connection, self.run_id, limits, self._writer.attempt)

        self._has_begun = True
        self._after_epoch = limits["epochs"]
        self._act(Ticket(begin, is_kept=self._opens_late, first_sequence=0))

    def end_attempt(self, outcome: str) -> None:
        """Record how the attempt ended: completed, stopped, interrupted or failed."""
        ended = self._wall_time()

        def end(connection: Connection) -> None:
            close_attempt(connection, self.run_id, self._writer.attempt, text(outcome), ended)

        self._act(Ticket(end, is_kept=self._opens_late))

    # The thread

    def flush(self, timeout: float | None = None) -> None:
        """Return once everything logged so far is durable; raise if it is not, the rows are kept either way."""
        ticket = Ticket()
        self._writer.put_ticket(ticket)
        self._writer.wait_for(ticket, timeout)

    def health(self) -> Health:
        """Return how writing goes; costs nothing."""
        return self._writer.health()

    def close(self, timeout: float | None = CLOSE_SECONDS) -> None:
        """Write what is queued and let go of the database; a second call does nothing."""
        if not self._writer.is_closed:
            self._writer.close(timeout)

    def _open(self) -> None:
        """Go on after what the run has already, for a process that adds to a run without an attempt of its own."""
        ticket = Ticket(is_kept=self._opens_late, is_durable=False)

        def look(connection: Connection) -> None:
            self._writer.attempt, last_epoch, ticket.first_sequence = end_of_run(connection, self.run_id)
            if not self._has_begun:
                self._after_epoch = last_epoch

        ticket.action = look
        try:
            self._act(ticket)
        except BaseException:
            self._writer.abandon()
            raise

    def _act(self, ticket: Ticket) -> None:
        self._writer.put_ticket(ticket)
        if not ticket.is_kept:
            self._writer.wait_for(ticket, None)


def _of_run(name: str, value: Plain) -> Plain:
    if name in ("config", "tags"):
        return as_json(value)
    if value is None:
        return None
    return whole(value) if name == "seed" else text(value)
