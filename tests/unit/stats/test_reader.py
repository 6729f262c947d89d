from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from hookloop.errors import StatsError, StatsQueryError, UnknownNameError
from hookloop.stats import StatsReader, StatsStore
from tests.unit.stats.logged import RUN, log_epoch, metric_row, reading


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A run of three epochs that has not ended."""
    path = tmp_path / "stats.sqlite"
    with StatsStore(path, run_id=RUN) as store:
        store.begin_attempt(1, reading(0))
        for epoch in (1, 2, 3):
            log_epoch(store, epoch)
        store.log_metrics([metric_row({"tail": 1.0}, reading(3), "training_end")])
    return path


def test_the_names_and_newest_values_of_all_metrics_are_found(path: Path) -> None:
    reader = StatsReader(path)

    assert reader.keys(RUN) == ["loss", "lr", "noise", "return/max", "return/mean", "tail"]
    assert reader.latest(RUN)["loss"][:3] == (2, 25, 5)
    assert reader.latest(RUN)["loss"].value == 7.5
    assert [point.value for point in reader.metric(RUN, "return/mean", since_epoch=2)] == [2.0, 3.0]


def test_the_curves_of_one_hook_are_found_at_once_from_an_epoch_on(path: Path) -> None:
    with StatsStore(path, run_id=RUN) as store:
        store.begin_attempt(2, reading(3), resumed_from=30)
        store.log_metrics([metric_row({"loss": 9.0}, reading(3), hook="another")])
    reader = StatsReader(path)

    curves = reader.metrics_since(RUN, 2, hook="learner")

    assert {name: curves[name] for name in ("loss", "tail")} == {
        name: [point for point in reader.metric(RUN, name, since_epoch=2) if point.value != 9.0]
        for name in ("loss", "tail")
    }
    assert [point.value for point in reader.metrics_since(RUN, 0, hook="another")["loss"]] == [9.0]
    assert reader.metrics_since(RUN, 0) == {}


def test_trackers_are_given_whole_epochs_in_order(path: Path) -> None:
    reader = StatsReader(path)

    first, cursor = reader.rows_after(RUN, None, 1)
    second, after = reader.rows_after(RUN, cursor, 100)
    nothing, end = reader.rows_after(RUN, after, 100)

    assert [row["key"] for row in first] == ["lr", "loss", "loss", "noise", "return/max", "return/mean"]
    assert {row["epoch"] for row in second} == {1, 2, 3}
    assert (len(first), len(second), len(nothing)) == (6, 12, 0)
    assert (cursor, after, end) == (1, 3, 3)


def test_trackers_are_given_the_last_rows_once_the_attempt_has_ended(path: Path) -> None:
    with StatsStore(path, run_id=RUN) as store:
        store.end_attempt("completed")

    rows, cursor = StatsReader(path).rows_after(RUN, 3)

    assert [row["key"] for row in rows] == ["tail"]
    assert StatsReader(path).rows_after(RUN, cursor) == ([], cursor)


def test_a_run_that_goes_on_after_its_last_rows_tells_trackers_the_rest_and_nothing_twice(path: Path) -> None:
    with StatsStore(path, run_id=RUN) as store:
        store.end_attempt("stopped")
        _, cursor = StatsReader(path).rows_after(RUN, 3)
        store.begin_attempt(2, reading(3), resumed_from=30)
        log_epoch(store, 4)
        store.flush()

        rows, after = StatsReader(path).rows_after(RUN, cursor)

    assert cursor == -4
    assert [row["key"] for row in rows] == ["lr", "loss", "loss", "noise", "return/max", "return/mean"]
    assert after == 4


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM points",
        "INSERT INTO runs (run_id) VALUES ('x')",
        "PRAGMA user_version = 3",
        "ATTACH DATABASE 'other.sqlite' AS other",
        "WITH chosen AS (SELECT 1) DELETE FROM points",
        "SELECT load_extension('x')",
        "SELECT 1; DELETE FROM points",
        "CREATE TABLE t (x)",
        "DROP TABLE points",
        "BEGIN",
        "",
    ],
)
def test_a_query_that_could_change_something_is_refused(path: Path, query: str) -> None:
    before = path.read_bytes()

    with pytest.raises(StatsQueryError):
        StatsReader(path).sql(query)

    assert path.read_bytes() == before


def test_a_query_is_limited_in_rows_and_time(path: Path) -> None:
    reader = StatsReader(path)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"

    assert len(reader.sql("SELECT * FROM metrics", 4)) == 4
    with pytest.raises(StatsQueryError, match=r"longer than 0\.05 seconds"):
        reader.sql(endless, seconds=0.05)


def test_a_misspelt_query_says_where_the_tables_are_listed(path: Path) -> None:
    with pytest.raises(StatsQueryError, match=r"no such table: metrix.*docs/stats\.md"):
        StatsReader(path).sql("SELECT * FROM metrix")


def test_what_is_not_there_is_said(tmp_path: Path, path: Path) -> None:
    with pytest.raises(StatsError, match="no statistics database at"):
        StatsReader(tmp_path / "nothing.sqlite").runs()
    with closing(sqlite3.connect(tmp_path / "empty.sqlite")) as connection:
        connection.execute("CREATE TABLE t (x)")
    with pytest.raises(StatsError, match="no statistics in"):
        StatsReader(tmp_path / "empty.sqlite").runs()
    (tmp_path / "text.sqlite").write_text("this is no database" * 100)
    with pytest.raises(StatsError, match=r"text\.sqlite cannot be read: file is not a database"):
        StatsReader(tmp_path / "text.sqlite").runs()
    with pytest.raises(UnknownNameError, match="Did you mean 'episodes'"):
        StatsReader(path).superseded(RUN, "episode")
    with pytest.raises(StatsError, match="no run 'run-2' in this database; there are: run-1"):
        StatsReader(path).run("run-2")


def test_statistics_are_read_without_torch_and_numpy_and_named_without_sqlalchemy(path: Path) -> None:
    program = f"""
import sys, hookloop.stats
assert 'sqlalchemy' not in sys.modules
hookloop.stats.StatsReader({str(path)!r}).latest({RUN!r})
assert not {{'torch', 'numpy', 'psycopg', 'gymnasium'}} & set(sys.modules)
"""

    subprocess.run([sys.executable, "-c", program], check=True)
