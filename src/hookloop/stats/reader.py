"""The statistics of runs, as anybody may read them: from any process, at any time, without a way to change them."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from hookloop.errors import StatsError, UnknownNameError
from hookloop.stats import schema
from hookloop.stats.database import brief, reading_engine, shown, sqlite_path
from hookloop.stats.migrations import refuse_newer, stored_version
from hookloop.stats.outbox import rows_after
from hookloop.stats.rows import joined
from hookloop.stats.schema import EPOCHS, POINTS, RUNS, SERIES, TRACKER_CURSORS
from hookloop.stats.sql import query_file, query_server

if TYPE_CHECKING:
    from sqlalchemy import Connection, Select, Table

Row = dict[str, Any]

JSON_COLUMNS = frozenset({"about", "config", "metrics", "players", "scores", "tags", "versions"})
NONFINITE_OF = {
    "points": "value",
    "episodes": "return",
    "evaluations": "score",
    "replays": "return",
    "ratings": "rating",
}
PLACE_ORDER = ("epoch", "env_steps", "optimizer_steps", "after_epoch")

_POINT_COLUMNS = tuple(
    POINTS.c[name] for name in ("epoch", "env_steps", "optimizer_steps", "seconds", "value", "nonfinite")
)
_POINT_ORDER = (*(POINTS.c[name] for name in PLACE_ORDER), POINTS.c.sequence, POINTS.c.series_id)


class Point(NamedTuple):
    """One value of a metric, and the clocks at which it was measured."""

    epoch: int
    env_steps: int
    optimizer_steps: int
    seconds: float
    value: float


class StatsReader:
    """Reads the statistics of runs.

    Args:
        url_or_path: What the store was given.
    """

    def __init__(self, url_or_path: str | Path) -> None:
        self._url_or_path = url_or_path
        self._engine = reading_engine(url_or_path)
        self._is_checked = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    def runs(self) -> list[Row]:
        """Return all runs, the oldest first."""
        return self._rows(RUNS, select(RUNS).order_by(RUNS.c.created, RUNS.c.run_id))

    def run(self, run_id: str) -> Row:
        """Return one run."""
        found = self._rows(RUNS, select(RUNS).where(RUNS.c.run_id == run_id))
        if not found:
            known = ", ".join(each["run_id"] for each in self.runs()) or "none"
            raise StatsError(f"There is no run {run_id!r} in this database; there are: {known}.")
        return found[0]

    def attempts(self, run_id: str) -> list[Row]:
        """Return the attempts of a run in order."""
        return self._of_run(schema.ATTEMPTS, run_id, ("attempt",))

    def keys(self, run_id: str) -> list[str]:
        """Return the names of all metrics of a run that have a value."""
        has_point = select(POINTS.c.series_id).where(POINTS.c.series_id == SERIES.c.series_id).exists()
        query = select(SERIES.c.key).where(SERIES.c.run_id == run_id, has_point).distinct().order_by(SERIES.c.key)
        return [str(key) for (key,) in self._fetch(query)]

    def metric(self, run_id: str, key: str, *, since_epoch: int = 0) -> list[Point]:
        """Return the curve of a metric in the order of the clocks, from an epoch on."""
        query = (
            select(*_POINT_COLUMNS)
            .join(SERIES, SERIES.c.series_id == POINTS.c.series_id)
            .where(SERIES.c.run_id == run_id, SERIES.c.key == key, POINTS.c.epoch >= since_epoch)
            .order_by(*_POINT_ORDER)
        )
        return [_point(found) for found in self._fetch(query)]

    def metrics_since(self, run_id: str, epoch: int, *, hook: str = "") -> dict[str, list[Point]]:
        """Return the curves of all metrics of a hook from an epoch on, by name; those of the workload by default."""
        query = (
            select(SERIES.c.key, *_POINT_COLUMNS)
            .join(SERIES, SERIES.c.series_id == POINTS.c.series_id)
            .where(SERIES.c.run_id == run_id, SERIES.c.hook == hook, POINTS.c.epoch >= epoch)
            .order_by(SERIES.c.series_id, *_POINT_ORDER)
        )
        curves: dict[str, list[Point]] = {}
        for key, *found in self._fetch(query):
            curves.setdefault(str(key), []).append(_point(found))
        return curves

    def latest(self, run_id: str) -> dict[str, Point]:
        """Return the newest value of every metric."""
        later = POINTS.alias()
        # Rows come in by epochs, so the newest of a series are at the end of its primary key: one step in the index.
        last = select(func.max(later.c.after_epoch)).where(later.c.series_id == SERIES.c.series_id)
        query = (
            select(SERIES.c.key, *_POINT_COLUMNS)
            .where(SERIES.c.run_id == run_id, POINTS.c.series_id == SERIES.c.series_id)
            .where(POINTS.c.after_epoch == last.scalar_subquery())
            .order_by(*_POINT_ORDER)
        )
        newest = {str(key): found for key, *found in self._fetch(query)}
        return {key: _point(newest[key]) for key in sorted(newest)}

    def epochs(self, run_id: str) -> list[Row]:
        """Return the completed epochs of a run in order."""
        return self._of_run(EPOCHS, run_id, ("epoch",))

    def last_epoch(self, run_id: str) -> Row | None:
        """Return the newest completed epoch of a run; None before the first."""
        mine = select(EPOCHS).where(EPOCHS.c.run_id == run_id).order_by(EPOCHS.c.epoch.desc()).limit(1)
        return next(iter(self._rows(EPOCHS, mine)), None)

    def episodes(self, run_id: str) -> list[Row]:
        """Return the finished episodes of a run in order."""
        return self._of_run(schema.EPISODES, run_id, (*PLACE_ORDER, "sequence"))

    def evaluations(self, run_id: str) -> list[Row]:
        """Return the evaluations of a run in order."""
        return self._of_run(schema.EVALUATIONS, run_id, (*PLACE_ORDER, "sequence", "name"))

    def checkpoints(self, run_id: str) -> list[Row]:
        """Return the checkpoints that a run has written, deleted ones among them, in order."""
        return self._of_run(schema.CHECKPOINTS, run_id, (*PLACE_ORDER, "name"))

    def replays(self, run_id: str) -> list[Row]:
        """Return the replays of a run in order."""
        return self._of_run(schema.REPLAYS, run_id, (*PLACE_ORDER, "name"))

    def hook_costs(self, run_id: str) -> list[Row]:
        """Return what hooks have cost, by attempt, hook and event."""
        return self._of_run(schema.HOOK_COSTS, run_id, ("attempt", "hook", "event"))

    def hook_failures(self, run_id: str) -> list[Row]:
        """Return what has gone wrong in hooks, by attempt and hook."""
        return self._of_run(schema.HOOK_FAILURES, run_id, ("attempt", "hook"))

    def events(self, run_id: str) -> list[Row]:
        """Return what happened in a run, in order."""
        return self._of_run(schema.EVENTS, run_id, (*PLACE_ORDER, "sequence"))

    def lineage(self, run_id: str) -> list[Row]:
        """Return what was made from what, in order."""
        return self._of_run(schema.LINEAGE, run_id, (*PLACE_ORDER, "child", "parent"))

    def games(self, run_id: str) -> list[Row]:
        """Return the games of a run in order."""
        return self._of_run(schema.GAMES, run_id, (*PLACE_ORDER, "sequence"))

    def ratings(self, run_id: str) -> list[Row]:
        """Return the ratings of a run in order."""
        return self._of_run(schema.RATINGS, run_id, (*PLACE_ORDER, "player", "sequence"))

    def evaluation_tasks(self, run_id: str) -> list[Row]:
        """Return the evaluations that workers are asked for, in the order in which they were asked for."""
        return self._of_run(schema.EVALUATION_TASKS, run_id, ("created", "checkpoint_id", "suite", "seed"))

    def superseded(self, run_id: str, table: str = "epochs") -> list[Row]:
        """Return the rows of a table that resumes have moved aside."""
        if table not in schema.SUPERSEDED:
            raise UnknownNameError("table with rows that a resume moves aside", table, schema.SUPERSEDED)
        archive = schema.SUPERSEDED[table]
        if table == POINTS.name:
            mine = archive.c.series_id.in_(select(SERIES.c.series_id).where(SERIES.c.run_id == run_id))
            return self._rows(archive, select(archive).where(mine).order_by(archive.c.superseded_by, archive.c.epoch))
        return self._of_run(archive, run_id, ("superseded_by", "epoch"))

    def cursor(self, run_id: str, tracker: str) -> int:
        """Return how far a tracker has come, 0 before it has begun."""
        mine = (TRACKER_CURSORS.c.run_id == run_id) & (TRACKER_CURSORS.c.tracker == tracker)
        found = self._fetch(select(TRACKER_CURSORS.c.cursor).where(mine))
        return int(found[0][0]) if found else 0

    def rows_after(self, run_id: str, cursor: int | None, limit: int = 10_000) -> tuple[list[Row], int]:
        """Return the metrics of the whole epochs after a cursor, in order, and the next cursor; None begins."""
        with self._reading() as connection:
            return rows_after(connection, run_id, 0 if cursor is None else cursor, limit)

    def sql(self, query: str, limit: int = 1_000, *, seconds: float = 10.0) -> list[Row]:
        """Return what a query in SQL finds; it can read and nothing else.

        Args:
            query: One SELECT of the database's own dialect.
            limit: Most rows to return.
            seconds: Longest time to take.
        """
        path = sqlite_path(self._url_or_path)
        if path is not None:
            return query_file(path, query, limit, seconds)
        return query_server(self._engine, query, limit, seconds)

    def _of_run(self, table: Table, run_id: str, order: Sequence[str]) -> list[Row]:
        query = select(table).where(table.c.run_id == run_id).order_by(*(table.c[name] for name in order))
        return self._rows(table, query)

    def _rows(self, table: Table, query: Select[*tuple[Any, ...]]) -> list[Row]:
        value_column = NONFINITE_OF.get(table.name.removeprefix("superseded_"))
        return [_plain(found._mapping, value_column) for found in self._fetch(query)]

    def _fetch(self, query: Select[*tuple[Any, ...]]) -> Sequence[Any]:
        with self._reading() as connection:
            return connection.execute(query).all()

    @contextmanager
    def _reading(self) -> Generator[Connection]:
        try:
            with self._engine.connect() as connection:
                if not self._is_checked:
                    self._check(connection)
                yield connection
        except SQLAlchemyError as error:
            raise StatsError(f"The statistics in {shown(self._url_or_path)} cannot be read: {brief(error)}.") from error

    def _check(self, connection: Connection) -> None:
        version = stored_version(connection)
        if version is None:
            raise StatsError(
                f"There are no statistics in {shown(self._url_or_path)} yet; a run makes them when it begins."
            )
        refuse_newer(version)
        self._is_checked = True


def _point(found: Sequence[Any]) -> Point:
    epoch, env_steps, optimizer_steps, seconds, value, nonfinite = found
    return Point(epoch, env_steps, optimizer_steps, seconds, float(nonfinite or value))


def _plain(found: Mapping[str, Any], value_column: str | None) -> Row:
    row = {
        name: json.loads(value) if name in JSON_COLUMNS and value is not None else value
        for name, value in found.items()
    }
    if "nonfinite" in row:
        word = row.pop("nonfinite")
        if value_column is not None:
            row[value_column] = joined(row[value_column], word)
    return row
