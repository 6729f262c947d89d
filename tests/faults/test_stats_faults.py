"""What is logged survives kills, full disks, readers and servers that are away; training never notices."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hookloop.errors import StatsWriteError
from hookloop.stats import StatsClient, StatsReader, StatsStore
from tests.unit.stats.logged import RUN, live_tables, log_epoch, metric_row, reading
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
NOBODY = "postgresql+psycopg://nobody@/nothing?host=/nonexistent"


def started(script: str, *arguments: object) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    words = [sys.executable, str(ROOT / "tests" / "faults" / script), *map(str, arguments)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT)


def result_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    output, _ = process.communicate()
    assert process.returncode == 0
    return json.loads(output)


@pytest.mark.parametrize(
    "kills", [pytest.param(16, id="16 kills"), pytest.param(1000, id="1000 kills", marks=pytest.mark.faults)]
)
@pytest.mark.timeout(900)
def test_kills_leave_no_gap_no_duplicate_and_everything_that_was_flushed(kills: int, tmp_path: Path) -> None:
    found = result_of(started("stats_kills.py", tmp_path, kills, 7))

    assert found["faults"] == []
    assert found["is_equal"]
    assert found["lives_with_progress"] > kills // 4


@pytest.mark.parametrize("seconds", [pytest.param(3, id="3 s"), pytest.param(30, id="30 s", marks=pytest.mark.faults)])
def test_two_readers_and_a_writer_never_wait_for_each_other(seconds: int, tmp_path: Path) -> None:
    path = tmp_path / "stats.sqlite"
    with StatsStore(path, run_id=RUN, batch_rows=20, flush_seconds=0.01) as store:
        store.begin_attempt(1, reading(0))
        readers = [started("stats_reading.py", path, seconds) for _ in range(2)]
        epoch = 0
        while any(each.poll() is None for each in readers):
            epoch += 1
            log_epoch(store, epoch)
            if epoch % 10 == 0:
                store.flush()
            time.sleep(0.005)
        health = store.health()
    found = [result_of(each) for each in readers]

    assert [each["errors"] for each in found] == [[], []]
    assert all(each["reads"] > 3 for each in found)
    assert (health.failures, health.dropped) == (0, 0)


def test_a_full_disk_is_survived_and_what_was_written_stays_readable(tmp_path: Path) -> None:
    path = tmp_path / "stats.sqlite"
    with StatsStore(path, run_id=RUN) as store:
        store.begin_attempt(1, reading(0))
        log_epoch(store, 1)
    client = StatsClient(path, run_id=RUN, most_bytes=path.stat().st_size + 20_000, flush_seconds=0.05)
    client.begin_attempt(2, reading(1))
    for epoch in range(2, 2_000):
        log_epoch(client, epoch)
    with pytest.raises(StatsWriteError, match=r"full.*kept and tried again"):
        client.flush()

    assert client.health().queued > 0
    assert "full" in client.health().last_error
    assert StatsReader(path).epochs(RUN)[0]["epoch"] == 1
    client.close(5.0)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)

    with StatsStore(path, run_id=RUN) as store:  # somebody has made room
        store.begin_attempt(3, reading(1))
        for epoch in range(2, 5):
            log_epoch(store, epoch)
    assert [row["epoch"] for row in StatsReader(path).epochs(RUN)] == [1, 2, 3, 4]


def test_a_disk_that_has_room_again_takes_everything_that_waited(tmp_path: Path) -> None:
    folder = tmp_path / "later"
    folder.write_text("a file where the folder of the database should be")
    client = StatsClient(folder / "stats.sqlite", run_id=RUN, flush_seconds=0.01)
    client.begin_attempt(1, reading(0))
    log_epoch(client, 1)
    with pytest.raises(OSError, match="later"):
        client.flush()
    assert client.health().written == 0

    folder.unlink()
    log_epoch(client, 2)
    client.flush()
    client.close()

    assert client.health().dropped == 0
    assert client.health().last_error == ""
    with StatsStore(tmp_path / "whole.sqlite", run_id=RUN) as store:
        store.begin_attempt(1, reading(0))
        log_epoch(store, 1)
        log_epoch(store, 2)
    assert live_tables(folder / "stats.sqlite") == live_tables(tmp_path / "whole.sqlite")


def test_training_goes_on_without_its_database_and_each_kind_of_failure_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "file"
    folder.write_text("")
    client = StatsClient(folder / "stats.sqlite", run_id=RUN, flush_seconds=0.001, batch_rows=10, most_queued_rows=50)
    client.begin_attempt(1, reading(0))
    took: list[float] = []
    for epoch in range(1, 200):
        before = time.perf_counter()
        client.log_metrics([metric_row({"loss": 1.0}, reading(epoch))])
        took.append(time.perf_counter() - before)
        time.sleep(0.0005)
    wait_until(lambda: sum(client.failures.values()) > 1)
    client.end_attempt("completed")
    client.close(1.0)

    assert client.health().dropped == 149
    assert len([each for each in caplog.records if "cannot be written, and training goes on" in each.message]) == 1
    assert sorted(took)[len(took) // 2] < 0.001


def test_a_server_that_is_away_does_not_hold_training_up(caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'hookloop[postgres]'")
    taken: list[float] = []
    while not taken or (taken[-1] >= 1.0 and len(taken) < 5):  # the machine may be kept busy
        began = time.perf_counter()
        client = StatsClient(NOBODY, run_id=RUN)
        client.begin_attempt(1, reading(0))
        log_epoch(client, 1)
        taken.append(time.perf_counter() - began)
    assert min(taken) < 1.0

    with pytest.raises(StatsWriteError):
        client.flush()
    client.close(5.0)

    assert client.health().queued == 13
    assert "13 rows could not be written" in caplog.text
