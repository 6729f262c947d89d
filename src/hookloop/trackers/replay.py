"""Telling one tracker what it has missed, step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Protocol

from hookloop.trackers.base import EpochRows, Row, Source, StopsRuns, TrackedRun, Tracker, epochs_held

BATCH_ROWS = 5_000


class Lock(Protocol):
    """The right to tell a tracker about a run, which one process has at a time."""

    def acquire(self) -> None:
        """Take it, or raise."""
        ...

    def release(self) -> None:
        """Give it back."""
        ...


class Replay:
    """Reads the epochs that a tracker lacks from a source, sends them, and saves the cursor; nothing waits in memory.

    Whatever a tracker raises ends up in ``error``. It is then opened again, and says how far it has come: what was
    under way may have arrived or not.

    Args:
        tracker: Who is told.
        source: What, and from where on.
        lock: Held from the first step to ``close``.
        model_parameters: The size of the model, if it is known.
        batch_rows: About as many points are sent at a time.
    """

    def __init__(
        self,
        tracker: Tracker,
        source: Source,
        *,
        lock: Lock | None = None,
        model_parameters: int | None = None,
        batch_rows: int = BATCH_ROWS,
    ) -> None:
        self._tracker, self._source, self._lock = tracker, source, lock
        self._model_parameters = model_parameters
        self._batch_rows = batch_rows
        self._is_locked = self._is_open = self._has_unsaved = False
        self._cursor: int | None = None
        self.error: Exception | None = None
        """What the latest step failed with; None if it succeeded."""
        self.is_caught_up = False
        """Whether there was nothing more to send at the latest step."""
        self.rows_sent = 0
        self.first_epoch: int | None = None
        self.last_epoch: int | None = None

    @property
    def epochs_held(self) -> int:
        """How many epochs the tracker has, as far as is known."""
        return epochs_held(self._cursor or 0)

    def advance(self) -> bool:
        """Send the next epochs, if there are any; return whether that succeeded."""
        return self._tried(self._advance)

    def finish(self, outcome: str) -> bool:
        """Tell the tracker how the run ended; return whether that succeeded."""
        return self._tried(lambda: self._tracker.finish(outcome))

    def stop_reason(self) -> str | None:
        """Return why somebody wants the run to stop, if the tracker can tell."""
        found: list[str | None] = []
        if self._is_open and isinstance(self._tracker, StopsRuns):
            tracker = self._tracker
            self._tried(lambda: found.append(tracker.stop_reason()))
        return found[0] if found else None

    def has_ended(self) -> bool:
        """Return whether the source says that the run has ended."""
        found: list[bool] = []
        self._tried(lambda: found.append(self._source.run().status != "running"))
        return bool(found and found[0])

    def close(self) -> None:
        """Let go of the tracker, the source and the lock."""
        self._close_tracker()
        self._tried(self._source.close, reopens=False)
        if self._lock is not None:
            self._lock.release()
        self._is_locked = False

    def _advance(self) -> None:
        if self._cursor is None or not self._is_open:
            self._cursor = self._opened()
        rows, cursor = self._source.rows_after(self._cursor, self._batch_rows)
        self.is_caught_up = not rows
        if rows:
            self._tracker.log(_by_epoch(rows, cursor))
            self._note(rows)
            self._has_unsaved = True
        self._cursor = cursor
        if self._has_unsaved:
            self._source.save_cursor(cursor)
            self._has_unsaved = False

    def _opened(self) -> int:
        if self._lock is not None and not self._is_locked:
            self._lock.acquire()
            self._is_locked = True
        run: TrackedRun = replace(self._source.run(), model_parameters=self._model_parameters)
        held = self._tracker.open(run)
        self._is_open = True
        if held is not None:
            return held
        return self._source.cursor() if self._cursor is None else self._cursor

    def _note(self, rows: Sequence[Row]) -> None:
        self.rows_sent += len(rows)
        if self.first_epoch is None:
            self.first_epoch = rows[0]["after_epoch"] + 1
        self.last_epoch = rows[-1]["after_epoch"] + 1

    def _close_tracker(self) -> None:
        self._is_open = False
        self._tried(self._tracker.close, reopens=False)

    def _tried(self, step: Callable[[], object], *, reopens: bool = True) -> bool:
        try:
            step()
        except Exception as error:  # noqa: BLE001  # the tracker queue: a tracker is anybody's code and may raise anything
            if reopens:
                self._close_tracker()
                self.error, self.is_caught_up = error, False
            return False
        if reopens:
            self.error = None
        return True


def _by_epoch(rows: Sequence[Row], cursor: int) -> list[EpochRows]:
    """Cut points into epochs; the last one takes the tracker to the cursor."""
    found = [EpochRows(tuple(each), after + 1) for after, each in groupby(rows, key=lambda row: row["after_epoch"])]
    return [*found[:-1], replace(found[-1], cursor=cursor)]
