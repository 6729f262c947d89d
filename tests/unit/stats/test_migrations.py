from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import Connection

from hookloop.errors import StatsSchemaError
from hookloop.stats import StatsReader, StatsStore
from hookloop.stats.database import writing_engine
from hookloop.stats.migrations import MIGRATIONS, migrate, stored_version
from hookloop.stats.schema import SCHEMA_VERSION
from tests.unit.stats.logged import RUN, log_epoch, reading

NEXT = SCHEMA_VERSION + 1
DUMPS = sorted((Path(__file__).parent / "dumps").glob("v*.sql"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "stats.sqlite"
    with StatsStore(path, run_id=RUN) as store:
        store.begin_attempt(1, reading(0))
        log_epoch(store, 1)
    return path


def add_a_column(connection: Connection) -> None:
    connection.exec_driver_sql("ALTER TABLE epochs ADD COLUMN mood TEXT")
    connection.exec_driver_sql("UPDATE epochs SET mood = 'fine'")


def add_and_fail(connection: Connection) -> None:
    add_a_column(connection)
    raise RuntimeError("half-way")


def columns(path: Path) -> set[str]:
    with sqlite3.connect(path) as connection:
        found = {row[1] for row in connection.execute("PRAGMA table_info(epochs)")}
    connection.close()
    return found


def test_there_is_a_dump_of_every_version_and_a_step_from_every_older_one() -> None:
    assert [path.stem for path in DUMPS] == [f"v{version}" for version in range(1, SCHEMA_VERSION + 1)]
    assert sorted(MIGRATIONS) == list(range(1, SCHEMA_VERSION))


@pytest.mark.parametrize("dump", DUMPS, ids=lambda path: path.stem)
def test_a_database_of_every_version_is_brought_up_to_date_and_used(dump: Path, tmp_path: Path) -> None:
    path = tmp_path / "stats.sqlite"
    with sqlite3.connect(path) as connection:
        connection.executescript(dump.read_text(encoding="utf-8"))
    connection.close()

    with StatsStore(path, run_id=RUN) as store:
        store.begin_attempt(2, reading(1))
        log_epoch(store, 2)

    reader = StatsReader(path)
    assert [row["epoch"] for row in reader.epochs(RUN)] == [1, 2]
    assert [point.value for point in reader.metric(RUN, "return/mean")] == [1.0, 2.0]


def test_a_step_changes_what_is_there_and_the_version(path: Path) -> None:
    with writing_engine(path).connect() as connection:
        migrate(connection, steps={SCHEMA_VERSION: add_a_column}, newest=NEXT)

        assert stored_version(connection) == NEXT
    assert "mood" in columns(path)


def test_a_step_that_fails_half_way_leaves_the_old_version_whole(path: Path) -> None:
    with writing_engine(path).connect() as connection:
        with pytest.raises(RuntimeError, match="half-way"):
            migrate(connection, steps={SCHEMA_VERSION: add_and_fail}, newest=NEXT)

        assert stored_version(connection) == SCHEMA_VERSION
    assert "mood" not in columns(path)


def test_a_newer_database_is_refused_by_store_and_reader_and_left_alone(path: Path) -> None:
    with writing_engine(path).connect() as connection:
        migrate(connection, steps={SCHEMA_VERSION: add_a_column}, newest=NEXT)

    with pytest.raises(StatsSchemaError, match=f"schema version {NEXT}; .* up to {SCHEMA_VERSION}. Upgrade"):
        StatsStore(path, run_id=RUN)
    with pytest.raises(StatsSchemaError, match="Upgrade hookloop"):
        StatsReader(path).runs()


def test_a_missing_step_is_said(path: Path) -> None:
    with writing_engine(path).connect() as connection, pytest.raises(StatsSchemaError, match="no way from"):
        migrate(connection, steps={}, newest=NEXT)
