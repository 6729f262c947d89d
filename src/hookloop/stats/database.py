"""Connections: one that writes, and any number that only read, to SQLite files and PostgreSQL URLs."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sqlalchemy import create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import NullPool, QueuePool

from hookloop.errors import MissingExtraError, StatsError

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

BUSY_SECONDS = 10.0
PAGE_BYTES = 4096  # SQLite's own default
CONNECT_SECONDS = 10
_POSTGRESQL = ("postgresql", "postgres")


def sqlite_path(url_or_path: str | Path) -> Path | None:
    """Return the file of a path or an SQLite URL; None for a server's URL."""
    text = os.fspath(url_or_path)
    if "://" not in text:
        return Path(text)
    try:
        url = make_url(text)
    except ArgumentError as error:
        # The text may hold a password, so that only its beginning is said.
        raise StatsError(
            f"'{text.partition('://')[0]}://...' is no database URL; give a path or postgresql+psycopg://user@host/name."
        ) from error
    if url.get_backend_name() == "sqlite":
        if not url.database or url.database == ":memory:":
            raise StatsError(f"{text!r} is no file, and readers in other processes need one; give a path.")
        return Path(url.database)
    if url.get_backend_name() not in _POSTGRESQL:
        raise StatsError(
            f"Statistics are kept in SQLite or PostgreSQL, got {url.drivername!r}; "
            "give a path or postgresql+psycopg://user@host/name."
        )
    return None


def require_driver(url_or_path: str | Path) -> None:
    """Refuse what can never be opened: no URL of ours, or one whose driver is not installed."""
    if sqlite_path(url_or_path) is None and find_spec("psycopg") is None:
        raise MissingExtraError("PostgreSQL", "postgres")


def shown(url_or_path: str | Path) -> str:
    """Return a database's place as it may be printed: without the password."""
    path = sqlite_path(url_or_path)
    return str(path) if path is not None else make_url(os.fspath(url_or_path)).render_as_string(hide_password=True)


def brief(error: BaseException) -> str:
    """Return what a database said, without the statement and the rows that it was said about."""
    said = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return " ".join(str(said).split())


def writing_engine(url_or_path: str | Path, *, most_bytes: int | None = None) -> Engine:
    """Return an engine whose connections write; the folder of an SQLite file is made."""
    path = sqlite_path(url_or_path)
    if path is None:
        return _server_engine(os.fspath(url_or_path), "-c synchronous_commit=off", is_pooled=False)
    path.parent.mkdir(parents=True, exist_ok=True)

    def connect() -> sqlite3.Connection:
        pragmas = ["journal_mode=WAL", "synchronous=NORMAL"]
        if most_bytes is not None:
            pragmas.append(f"max_page_count={max(1, most_bytes // PAGE_BYTES)}")
        return _opened(str(path.absolute()), pragmas)

    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)
    # The write lock is taken at the start: a lock that is asked for half-way cannot wait for another writer.
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return engine


def reading_engine(url_or_path: str | Path) -> Engine:
    """Return an engine whose connections cannot write."""
    path = sqlite_path(url_or_path)
    if path is None:
        return _server_engine(os.fspath(url_or_path), "-c default_transaction_read_only=on", is_pooled=True)
    engine = create_engine("sqlite://", creator=lambda: read_only_connection(path), poolclass=NullPool)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
    return engine


def read_only_connection(path: Path) -> sqlite3.Connection:
    """Open an SQLite file such that nothing can be changed through the connection."""
    if not path.is_file():
        raise StatsError(f"There is no statistics database at {path}; a run makes it when it begins.")
    uri = f"file:{quote(str(path.absolute()))}?mode=ro"
    # SQLite keeps an index of its log beside the file. Where it can make none, nobody else can be writing either.
    if not os.access(path.parent, os.W_OK) and not path.with_name(f"{path.name}-wal").exists():
        uri += "&immutable=1"
    return _opened(uri, ["query_only=ON"])


@contextmanager
def transaction(connection: Connection, *, is_durable: bool) -> Generator[None]:
    """Write what is done within, whole or not at all.

    Args:
        connection: One of a writing engine.
        is_durable: Return once this and every commit before it is on the disk; otherwise the operating system has it,
            and a power cut, not a kill, can take the latest commits, in order.
    """
    if connection.dialect.name == "sqlite":
        driver: Any = connection.connection.driver_connection
        driver.execute(f"PRAGMA synchronous={'FULL' if is_durable else 'NORMAL'}")
    with connection.begin():
        if is_durable:
            if connection.dialect.name != "sqlite":
                connection.exec_driver_sql("SET LOCAL synchronous_commit TO on")
            # A commit without a change writes nothing, and so would not flush the commits before it either.
            connection.exec_driver_sql("UPDATE schema_info SET value = value + 1 WHERE name = 'flushes'")
        yield


def _opened(path_or_uri: str, pragmas: Iterable[str]) -> sqlite3.Connection:
    # isolation_level None: the module begins no transactions on its own, ours span DDL as well.
    connection = sqlite3.connect(
        path_or_uri,
        uri=path_or_uri.startswith("file:"),
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return connection


def _server_engine(url: str, options: str, *, is_pooled: bool) -> Engine:
    parsed = make_url(url)
    if parsed.drivername in _POSTGRESQL:
        parsed = parsed.set(drivername="postgresql+psycopg")
    # A reader may come often; a writer has one connection, and a broken one must not be used again.
    pool = QueuePool if is_pooled else NullPool
    arguments = {"connect_timeout": CONNECT_SECONDS, "options": options}
    require_driver(url)
    return create_engine(parsed, poolclass=pool, pool_pre_ping=is_pooled, connect_args=arguments)
