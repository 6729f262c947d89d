"""Rows on their way to the tables: numbered where they share their clocks, and grouped into few statements."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DataError, IntegrityError

from hookloop.stats.database import brief
from hookloop.stats.rows import split, text
from hookloop.stats.schema import METADATA, POINTS, SERIES

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table

log = logging.getLogger("hookloop.stats")

POISON = (DataError, IntegrityError, OverflowError)
"""What a database says of a row that it will never take."""

Place = tuple[int, int, int, int]
"""After which epoch a row came in, and the epoch, env_steps and optimizer_steps at which it was measured."""


class LoggedPoints(NamedTuple):
    """What one call of a hook logged: several metrics at one moment."""

    place: Place
    seconds: float
    hook: str
    event: str
    values: Mapping[str, float]


class LoggedRow(NamedTuple):
    """One row of a table, but for its sequence."""

    table: str
    row: Mapping[str, Any]


Logged = LoggedPoints | LoggedRow


class Sequences:
    """Counts rows that share their key and clocks, so that each has a place of its own.

    Late rows, such as those of a hook in the background, come a few epochs after their clocks at most: only the latest
    moments are remembered.
    """

    def __init__(self, first: int = 0, *, most_moments: int = 20_000) -> None:
        self.first = first
        self._most = most_moments
        self._young: dict[tuple[object, ...], dict[object, int]] = {}
        self._old: dict[tuple[object, ...], dict[object, int]] = {}

    def at(self, moment: tuple[object, ...]) -> dict[object, int]:
        """Return how many rows there were of each key at a moment; the caller counts on."""
        counts = self._young.get(moment)
        if counts is None:
            if len(self._young) >= self._most:
                self._old, self._young = self._young, {}
            counts = self._young[moment] = self._old.pop(moment, {})
        return counts


@dataclass(slots=True)
class Batch:
    """Rows of one transaction, numbered: a second try writes exactly the same rows.

    Points begin with the key of their series, for which a connection puts its number.
    """

    run_id: str
    points: dict[tuple[str, str], list[tuple[Any, ...]]] = field(default_factory=dict)
    rows: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    count: int = 0

    def add(self, logged: Logged, sequences: Sequences, attempt: int) -> None:
        """Take a row in."""
        if isinstance(logged, LoggedPoints):
            self._add_points(logged, sequences)
        else:
            self._add_row(logged, sequences, attempt)

    def _add_points(self, logged: LoggedPoints, sequences: Sequences) -> None:
        (after, epoch, env_steps, optimizer_steps), seconds = logged.place, logged.seconds
        source = (logged.hook, logged.event)
        counts, first = sequences.at((source, logged.place)), sequences.first
        append = self.points.setdefault(source, []).append
        for key, value in logged.values.items():
            number = counts.get(key, first)
            counts[key] = number + 1
            finite, nonfinite = (value, None) if isfinite(value) else split(value)
            append((key, after, epoch, env_steps, optimizer_steps, number, seconds, finite, nonfinite))
        self.count += len(logged.values)

    def _add_row(self, logged: LoggedRow, sequences: Sequences, attempt: int) -> None:
        columns, key = _columns_of(logged.table)
        row = dict(logged.row, run_id=self.run_id, attempt=attempt)
        if "sequence" in columns:
            counts = sequences.at((logged.table, *(row[name] for name in key)))
            row["sequence"] = counts.get("", sequences.first)
            counts[""] = row["sequence"] + 1
        self.rows.setdefault(logged.table, []).append(tuple(map(row.get, columns)))
        self.count += 1


class BatchInserts:
    """Writes batches through one connection; knows the numbers of the series it has met."""

    def __init__(self, connection: Connection, run_id: str) -> None:
        self._connection = connection
        self._run_id = run_id
        self._series: dict[tuple[str, str], dict[str, int]] = {}
        self._upserts: dict[str, str] = {}

    def write(self, batch: Batch) -> None:
        """Insert every row; one that is there already is replaced."""
        for source, points in batch.points.items():
            self._connection.exec_driver_sql(self._upsert(POINTS), self._numbered(source, points))
        for name, rows in batch.rows.items():
            self._connection.exec_driver_sql(self._upsert(METADATA.tables[name]), rows)

    def write_singly(self, batch: Batch) -> int:
        """Insert every row that the database takes, and return how many it refused."""
        refused = 0
        for source, points in batch.points.items():
            for point in points:
                refused += not self._is_taken(Batch(batch.run_id, points={source: [point]}))
        for name, rows in batch.rows.items():
            for row in rows:
                refused += not self._is_taken(Batch(batch.run_id, rows={name: [row]}))
        return refused

    def _is_taken(self, single: Batch) -> bool:
        try:
            with self._connection.begin_nested():
                self.write(single)
        except POISON as error:
            log.warning("The database refuses a row of statistics, which is left out: %s", brief(error))
            return False
        return True

    def _numbered(self, source: tuple[str, str], points: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Return points with the numbers of their series, which are made where they are new."""
        known = self._series.setdefault(source, {})
        unknown = {point[0] for point in points} - known.keys()
        if unknown:
            known.update(self._made(source, sorted(unknown)))
        return [(known[key], *point) for key, *point in points]

    def _made(self, source: tuple[str, str], keys: Sequence[str]) -> dict[str, int]:
        hook, event = map(text, source)
        insert = insert_into(self._connection, SERIES).on_conflict_do_nothing()
        self._connection.execute(
            insert, [{"run_id": self._run_id, "key": text(key), "hook": hook, "event": event} for key in keys]
        )
        mine = (SERIES.c.run_id == self._run_id) & (SERIES.c.hook == hook) & (SERIES.c.event == event)
        found = self._connection.execute(select(SERIES.c.key, SERIES.c.series_id).where(mine)).all()
        numbers = {str(key): int(number) for key, number in found}
        return {key: numbers[text(key)] for key in keys}

    def _upsert(self, table: Table) -> str:
        """Return the statement that inserts or replaces a row, its values in the order of the columns."""
        if table.name not in self._upserts:
            keys = [each.name for each in table.primary_key.columns]
            insert = insert_into(self._connection, table)
            rest = {each.name: insert.excluded[each.name] for each in table.c if each.name not in keys}
            statement = insert.on_conflict_do_update(index_elements=keys, set_=rest)
            is_sqlite = self._connection.dialect.name == "sqlite"
            dialect = sqlite.dialect(paramstyle="qmark") if is_sqlite else postgresql.dialect(paramstyle="format")
            self._upserts[table.name] = str(statement.compile(dialect=dialect))
        return self._upserts[table.name]


@cache
def _columns_of(table: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns of a table, and those of its key that a row brings itself."""
    found = METADATA.tables[table]
    key = tuple(each.name for each in found.primary_key.columns if each.name != "sequence")
    return tuple(each.name for each in found.c), key


def insert_into(connection: Connection, table: Table) -> Any:
    """Return an insert that knows what to do about a row that is there already."""
    return sqlite.insert(table) if connection.dialect.name == "sqlite" else postgresql.insert(table)
