"""Queries in SQL from people and dashboards: read, and nothing else, for a limited time."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from sqlalchemy.exc import SQLAlchemyError

from hookloop.errors import StatsError, StatsQueryError
from hookloop.stats.database import brief, read_only_connection

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})
_CANCELED = "57014"  # the code by which PostgreSQL says that a statement ran out of time
_FIRST_WORDS = ("select", "with", "values")
_INSTRUCTIONS = 10_000  # between two looks at the time: about a tenth of a millisecond


def query_file(path: Path, query: str, limit: int, seconds: float) -> list[dict[str, Any]]:
    """Run a query on an SQLite file."""
    _refuse_others(query)
    connection = read_only_connection(path)
    deadline = monotonic() + seconds
    try:
        connection.set_authorizer(_authorize)
        connection.set_progress_handler(lambda: monotonic() > deadline, _INSTRUCTIONS)
        cursor = connection.execute(query)
        names = [each[0] for each in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchmany(limit)]
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise StatsQueryError(_message(error, query, monotonic() > deadline, seconds)) from error
    finally:
        connection.close()


def query_server(engine: Engine, query: str, limit: int, seconds: float) -> list[dict[str, Any]]:
    """Run a query on a PostgreSQL server."""
    _refuse_others(query)
    with _connected(engine) as connection:
        dbapi: Any = connection.dialect.dbapi
        driver: Any = connection.connection.driver_connection
        try:
            driver.execute("SET TRANSACTION READ ONLY")
            driver.execute(f"SET LOCAL statement_timeout = {max(1, int(seconds * 1000))}")
            # A prepared statement is one statement: the server refuses "SELECT 1; COMMIT; DELETE ...".
            cursor = driver.execute(query, prepare=True)
            names = [each.name for each in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchmany(limit)]
        except dbapi.Error as error:
            is_late = getattr(error, "sqlstate", "") == _CANCELED
            raise StatsQueryError(_message(error, query, is_late, seconds)) from error
        finally:
            driver.rollback()


def _connected(engine: Engine) -> Connection:
    try:
        return engine.connect()
    except SQLAlchemyError as error:
        raise StatsError(f"The statistics cannot be asked: {brief(error)}.") from error


def _refuse_others(query: str) -> None:
    first = query.split(maxsplit=1)[0].lower().rstrip("(") if query.strip() else ""
    if first not in _FIRST_WORDS:
        raise StatsQueryError(
            f"Queries here only read and begin with SELECT, WITH or VALUES, got {query.strip()[:60]!r}."
        )


def _authorize(action: int, first: str | None, second: str | None, *_: object) -> int:
    if action not in _ALLOWED or (action == sqlite3.SQLITE_FUNCTION and second == "load_extension"):
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def _message(error: BaseException, query: str, is_late: bool, seconds: float) -> str:
    if is_late:
        return f"The query took longer than {seconds} seconds: {query.strip()[:200]!r}. Narrow it to a run or a key."
    return f"The query failed: {error}. It was {query.strip()[:200]!r}; the tables are listed in docs/stats.md."
