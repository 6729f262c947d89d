"""The one thread that writes: it batches what is logged, tries again what failed, and answers who waits."""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from hookloop.errors import HookloopError, StatsError, StatsWriteError
from hookloop.stats.batches import POISON, Batch, BatchInserts, Logged, Sequences
from hookloop.stats.database import brief, transaction, writing_engine
from hookloop.stats.migrations import migrate

if TYPE_CHECKING:
    from sqlalchemy import Connection

Action = Callable[["Connection"], None]

DATABASE_ERRORS = (SQLAlchemyError, sqlite3.Error, OSError, HookloopError)
MOST_WAIT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Health:
    """How writing goes."""

    queued: int
    """Rows that are logged and not committed yet."""
    written: int
    """Rows committed by this process."""
    dropped: int
    """Rows lost: the queue was full, or the database refused them for good."""
    failures: int
    """Transactions that failed; what they held is kept and tried again."""
    last_error: str
    """What the latest failure said; empty once a transaction has succeeded again."""

    @property
    def is_well(self) -> bool:
        """Whether nothing was lost and the latest transaction succeeded."""
        return not self.last_error and not self.dropped


@dataclass(slots=True)
class Ticket:
    """Something in the queue that is answered once everything before it is written."""

    action: Action | None = None
    is_durable: bool = True
    """Whether it is answered only once everything before it is on the disk."""
    is_kept: bool = False
    """Whether a failed action is tried again until it succeeds; otherwise the caller is told."""
    first_sequence: int | None = None
    """Where the numbers of rows that share their clocks begin afterwards; set by whoever knows."""
    is_done: threading.Event = field(default_factory=threading.Event)
    error: BaseException | None = None

    def answer(self, error: BaseException | None = None) -> None:
        """Let the caller go on."""
        self.error = error
        self.is_done.set()


class Writer:
    """Owns the writing connection and the thread that uses it."""

    def __init__(
        self,
        url_or_path: str | Path,
        *,
        run_id: str,
        most_bytes: int | None,
        batch_rows: int,
        flush_seconds: float,
        most_queued_rows: int,
        on_failure: Callable[[BaseException], None] | None,
    ) -> None:
        self._on_failure = on_failure
        self._url_or_path, self._run_id, self._most_bytes = url_or_path, run_id, most_bytes
        self._batch_rows, self._flush_seconds, self._most_queued_rows = batch_rows, flush_seconds, most_queued_rows
        self._queue: deque[tuple[int, Logged] | Ticket] = deque()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._is_closing = False
        self._queued = self._written = self._dropped = self._failures = self._dropped_before_flush = 0
        self._last_error = ""
        self._sequences = Sequences()
        self.attempt = 1
        """The attempt that rows belong to; set by the action that begins one."""
        self._batch = Batch(run_id)
        self._ticket: Ticket | None = None
        self._inserts: BatchInserts | None = None
        self._connection: Connection | None = None
        self._wait_seconds = flush_seconds
        self._thread = threading.Thread(target=self._run, name="hookloop-stats", daemon=True)
        self._thread.start()

    # For any thread

    def put(self, logged: Logged, rows: int = 1) -> None:
        """Queue rows; where the queue is full they are dropped and counted."""
        with self._lock:
            if self._is_closing or self._queued + rows > self._most_queued_rows:
                self._dropped += rows
                self._dropped_before_flush += rows
                return
            self._queue.append((rows, logged))
            self._queued += rows
            is_due = self._queued >= self._batch_rows and not self._last_error
        if is_due:
            self._wake.set()

    def put_ticket(self, ticket: Ticket) -> None:
        """Queue a ticket and have it served at once."""
        with self._lock:
            if self._is_closing:
                raise StatsError("The statistics store is closed; open a new one to log more.")
            self._queue.append(ticket)
        self._wake.set()

    def wait_for(self, ticket: Ticket, timeout: float | None) -> None:
        """Wait until a ticket is answered, and raise what it says."""
        if not ticket.is_done.wait(timeout):
            raise StatsWriteError(
                f"The statistics are not durable after {timeout} seconds; {self.health().queued} rows wait. "
                f"The latest error: {self._last_error or 'none'}."
            )
        if ticket.error is not None:
            raise ticket.error

    def health(self) -> Health:
        """Return how writing goes."""
        with self._lock:
            return Health(self._queued, self._written, self._dropped, self._failures, self._last_error)

    def close(self, timeout: float | None) -> None:
        """Write what is queued and end the thread; raise if something is lost with it."""
        ticket = Ticket()
        self.put_ticket(ticket)
        try:
            self.wait_for(ticket, timeout)
        finally:
            with self._lock:
                self._is_closing = True
            self._wake.set()
            self._thread.join(timeout)

    def abandon(self) -> None:
        """End the thread without writing what is queued."""
        with self._lock:
            self._is_closing = True
            self._queue.clear()
        self._wake.set()
        self._thread.join()

    @property
    def is_closed(self) -> bool:
        """Whether nothing more can be written."""
        return self._is_closing

    # For the thread alone

    def _run(self) -> None:
        try:
            self._write_until_closed()
        finally:
            # Should the thread ever end by a mistake of ours, nobody may wait for it for ever.
            with self._lock:
                has_failed, self._is_closing = not self._is_closing, True
                if has_failed:
                    self._last_error = "the thread that writes has ended; its traceback is above"
                waiting = [each for each in (self._ticket, *self._queue) if isinstance(each, Ticket)]
            for ticket in waiting:
                ticket.answer(StatsWriteError("The thread that writes statistics has ended; rows are lost."))
            self._disconnect()

    def _write_until_closed(self) -> None:
        while True:
            self._wake.wait(self._wait_seconds)
            self._wake.clear()
            while self._take():
                if not self._serve():
                    break
            if self._is_closing and (self._last_error or not self._queue):
                return

    def _take(self) -> bool:
        """Move the next rows into the batch, up to a ticket; say whether there is something to do."""
        while self._ticket is None and self._batch.count < self._batch_rows and self._queue:
            item = self._queue.popleft()
            if isinstance(item, Ticket):
                self._ticket = item
            else:
                self._batch.add(item[1], self._sequences, self.attempt)
        return bool(self._batch.count or self._ticket)

    def _serve(self) -> bool:
        """Write the batch and answer the ticket; say whether it succeeded."""
        ticket = self._ticket
        try:
            self._write_or_reconnect(ticket)
        except (*DATABASE_ERRORS, *POISON) as error:
            self._note(error)
            self._tell_waiting(_as_write_error(error))
            return False
        with self._lock:
            self._written += self._batch.count
            self._queued -= self._batch.count
            self._last_error = ""
        self._wait_seconds = self._flush_seconds
        self._batch, self._ticket = Batch(self._run_id), None
        if ticket is not None:
            self._answer(ticket)
        return True

    def _answer(self, ticket: Ticket) -> None:
        if ticket.first_sequence is not None:
            self._sequences = Sequences(ticket.first_sequence)
        with self._lock:
            lost, self._dropped_before_flush = self._dropped_before_flush, 0
        ticket.answer(_lost(lost) if lost else None)

    def _tell_waiting(self, error: BaseException) -> None:
        """Answer everybody who waits for rows to be durable: they are not, and the next try may be far away."""
        with self._lock:
            queued, self._queue = self._queue, deque()
            waiting: list[Ticket] = []
            for each in queued:
                if isinstance(each, Ticket) and not each.is_kept:
                    waiting.append(each)
                else:
                    self._queue.append(each)
        if self._ticket is not None and not self._ticket.is_kept:
            waiting.append(self._ticket)
            self._ticket = None
        for ticket in waiting:
            ticket.answer(error)

    def _write_or_reconnect(self, ticket: Ticket | None) -> None:
        """Write; a connection that was cut while it was idle is noticed only now, and gets one successor."""
        try:
            self._write(ticket)
        except DBAPIError as error:
            if not error.connection_invalidated:
                raise
            self._note(error)
            self._write(ticket)

    def _write(self, ticket: Ticket | None) -> None:
        connection, inserts = self._connect()
        is_durable = ticket is not None and ticket.is_durable
        try:
            with transaction(connection, is_durable=is_durable):
                inserts.write(self._batch)
                _act(ticket, connection)
        except POISON:
            # The transaction is undone, and with it the series it made.
            inserts = self._inserts = BatchInserts(connection, self._run_id)
            with transaction(connection, is_durable=is_durable):
                refused = inserts.write_singly(self._batch)
                _act(ticket, connection)
            with self._lock:
                self._dropped += refused
                self._written -= refused

    def _connect(self) -> tuple[Connection, BatchInserts]:
        if self._connection is None or self._inserts is None:
            self._connection = writing_engine(self._url_or_path, most_bytes=self._most_bytes).connect()
            migrate(self._connection)
            self._inserts = BatchInserts(self._connection, self._run_id)
        return self._connection, self._inserts

    def _disconnect(self) -> None:
        connection, self._connection, self._inserts = self._connection, None, None
        if connection is not None:
            connection.close()

    def _note(self, error: BaseException) -> None:
        """Remember a failure and begin with a new connection: the old one may be broken, or know series undone."""
        with self._lock:
            self._failures += 1
            self._last_error = f"{type(error).__name__}: {brief(error)}"
        self._wait_seconds = min(MOST_WAIT_SECONDS, 2 * max(self._wait_seconds, 0.05))
        self._disconnect()
        if self._on_failure is not None:
            self._on_failure(error)


def _act(ticket: Ticket | None, connection: Connection) -> None:
    if ticket is not None and ticket.action is not None:
        ticket.action(connection)


def _as_write_error(error: BaseException) -> BaseException:
    if isinstance(error, HookloopError):
        return error
    wrapped = StatsWriteError(
        f"The statistics could not be written ({brief(error)}); the rows are kept and tried again."
    )
    wrapped.__cause__ = error
    return wrapped


def _lost(rows: int) -> StatsWriteError:
    return StatsWriteError(
        f"{rows} rows of statistics were dropped, because too many waited while the database could not be written."
    )
