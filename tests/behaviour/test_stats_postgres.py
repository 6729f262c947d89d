"""The statistics of a team in PostgreSQL: the same tables, the same answers, the same promises as in a file."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.engine import make_url

from hookloop.errors import StatsQueryError, StatsSchemaError
from hookloop.stats import StatsClient, StatsReader, StatsStore
from hookloop.stats.database import writing_engine
from hookloop.stats.migrations import migrate, stored_version
from hookloop.stats.schema import SCHEMA_VERSION
from hookloop.stats.tags import write_tags
from tests.postgres import running_server
from tests.unit.stats.logged import RUN, live_tables, log_epoch, metric_row, reading

numbers = itertools.count()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running_server() as url:
        yield url


@pytest.fixture
def url(server: str) -> str:
    """A database of its own for each test."""
    name = f"test_{next(numbers)}"
    run_on(server, f"CREATE DATABASE {name}")
    return make_url(server).set(database=name).render_as_string(hide_password=False)


def run_on(server: str, statement: str) -> None:
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(statement))
    engine.dispose()


def log_a_resumed_run(database: str | Path) -> None:
    with StatsStore(database, run_id=RUN, batch_rows=7) as store:
        store.begin_attempt(1, reading(0), name="first", config={"a": 1}, seed=2)
        for epoch in range(1, 6):
            log_epoch(store, epoch)
    with StatsStore(database, run_id=RUN) as store:
        store.begin_attempt(2, reading(3), resumed_from=30)
        for epoch in range(4, 8):
            log_epoch(store, epoch)
        store.end_attempt("completed")


def test_a_server_and_a_file_hold_the_same_rows(url: str, tmp_path: Path) -> None:
    log_a_resumed_run(url)
    log_a_resumed_run(tmp_path / "stats.sqlite")

    assert live_tables(url) == live_tables(tmp_path / "stats.sqlite")
    served, filed = StatsReader(url), StatsReader(tmp_path / "stats.sqlite")
    assert repr(served.latest(RUN)) == repr(filed.latest(RUN))
    assert repr(served.rows_after(RUN, 2, 10)) == repr(filed.rows_after(RUN, 2, 10))
    assert [row["epoch"] for row in served.superseded(RUN)] == [4, 5]
    served.close()


def test_values_that_are_not_finite_and_odd_texts_are_kept(url: str) -> None:
    with StatsStore(url, run_id=RUN) as store:
        store.log_metrics([metric_row({"a": math.nan, "b": -math.inf, "odd \x00 \ud800": 1}, reading(1))])
        store.log_event("a\x00b", "what", "why", reading(1))

    with StatsReader(url) as reader:
        assert repr({key: point.value for key, point in reader.latest(RUN).items()}) == (
            "{'a': nan, 'b': -inf, 'odd \\\\0 \\\\ud800': 1.0}"
        )


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM points",
        "WITH gone AS (DELETE FROM points RETURNING 1) SELECT * FROM gone",
        "SELECT 1; COMMIT; DELETE FROM points",
        "SELECT setval('series_series_id_seq', 100)",
        "SET TRANSACTION READ WRITE",
        "COPY points TO PROGRAM 'true'",
    ],
)
def test_a_query_that_could_change_something_is_refused(url: str, query: str) -> None:
    with StatsStore(url, run_id=RUN) as store:
        log_epoch(store, 1)

    with StatsReader(url) as reader:
        with pytest.raises(StatsQueryError):
            reader.sql(query)

        assert reader.sql("SELECT count(*) AS points FROM metrics WHERE key LIKE '%'") == [{"points": 6}]


def test_a_query_is_limited_in_time(url: str) -> None:
    with StatsStore(url, run_id=RUN), StatsReader(url) as reader, pytest.raises(StatsQueryError, match="longer than"):
        reader.sql("SELECT pg_sleep(30)", seconds=0.1)


def test_many_runs_write_to_one_database_at_once(url: str) -> None:
    stores = [StatsStore(url, run_id=f"run-{n}", batch_rows=5) for n in range(4)]
    for store in stores:
        store.begin_attempt(1, reading(0))
    for epoch in range(1, 9):
        for store in stores:
            log_epoch(store, epoch)
    for store in stores:
        store.close()

    assert {len(live_tables(url, f"run-{n}")["metrics"]) for n in range(4)} == {48}


def test_a_connection_that_is_cut_is_made_again_and_nothing_is_lost(url: str, server: str) -> None:
    client = StatsClient(url, run_id=RUN, flush_seconds=0.05)
    client.begin_attempt(1, reading(0))
    log_epoch(client, 1)
    client.flush()
    name = make_url(url).database
    run_on(server, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")

    log_epoch(client, 2)
    client.close()

    assert sum(client.failures.values()) == 1
    assert client.health().dropped == 0
    assert len(live_tables(url)["metrics"]) == 12


def test_a_row_that_the_server_refuses_is_left_out_and_the_others_are_kept(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with StatsStore(url, run_id=RUN) as store:
        store.begin_attempt(1, reading(0))
        run_on(url, "ALTER TABLE events ADD CONSTRAINT no_ghosts CHECK (who <> 'ghost')")
        for who in ("a", "ghost", "b"):
            store.log_event(who, "came", "in", reading(1))
        store.flush()

        assert store.health().dropped == 1
    with StatsReader(url) as reader:
        assert [row["who"] for row in reader.events(RUN)] == ["a", "b"]
    assert "refuses a row" in caplog.text


def test_a_step_that_fails_half_way_leaves_the_old_version_whole(url: str) -> None:
    def add_and_fail(connection: Connection) -> None:
        connection.exec_driver_sql("ALTER TABLE epochs ADD COLUMN mood TEXT")
        raise RuntimeError("half-way")

    StatsStore(url, run_id=RUN).close()
    with writing_engine(url).connect() as connection:
        with pytest.raises(RuntimeError, match="half-way"):
            migrate(connection, steps={SCHEMA_VERSION: add_and_fail}, newest=SCHEMA_VERSION + 1)
        assert stored_version(connection) == SCHEMA_VERSION
        connection.rollback()
        migrate(connection, steps={SCHEMA_VERSION: lambda _: None}, newest=SCHEMA_VERSION + 1)

    with pytest.raises(StatsSchemaError, match="Upgrade hookloop"):
        StatsStore(url, run_id=RUN)


def test_tags_are_written_on_a_server_by_several_at_once(url: str) -> None:
    log_a_resumed_run(url)
    kept: list[str] = []

    def tag(name: str) -> None:
        kept.append(name)
        write_tags(url, RUN, lambda: sorted(kept))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(tag, (f"tag{k}" for k in range(12))))

    with StatsReader(url) as reader:
        assert reader.run(RUN)["tags"] == sorted(kept)
