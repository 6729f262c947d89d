from __future__ import annotations

from pathlib import Path

import pytest

from hookloop.errors import StatsError
from hookloop.stats import RunStatus, RunStatusReader, StatsStore
from tests.unit.stats.logged import RUN, log_epoch, reading


def test_nothing_is_known_before_a_run_has_begun(tmp_path: Path) -> None:
    path = tmp_path / "stats.sqlite"
    read = RunStatusReader(path, RUN)
    assert read() is None

    with StatsStore(path, run_id="another") as store:
        store.begin_attempt(1, reading(0))

    assert read() is None
    read.close()


@pytest.mark.parametrize(
    ("outcome", "is_over"), [("completed", True), ("stopped", True), ("failed", True), ("interrupted", False)]
)
def test_the_status_of_a_run_says_how_far_it_is_and_whether_it_is_over(
    tmp_path: Path, outcome: str, is_over: bool
) -> None:
    path = tmp_path / "stats.sqlite"
    with RunStatusReader(path, RUN) as read, StatsStore(path, run_id=RUN) as store:
        store.begin_attempt(1, reading(0))
        log_epoch(store, 1)
        log_epoch(store, 2)
        store.flush()
        running = read()
        store.end_attempt(outcome)
        ended = read()

    two = reading(2)
    counts = {"epochs": 2, "env_steps": two["env_steps"], "train_steps": two["optimizer_steps"]}
    assert running == RunStatus("running", 1, **counts)
    assert ended == RunStatus(outcome, 1, **counts)
    assert ended is not None
    assert (running.is_over if running else None, ended.is_over) == (False, is_over)


def test_counts_are_the_runs_and_go_on_over_attempts(tmp_path: Path) -> None:
    path = tmp_path / "stats.sqlite"
    for attempt in (1, 2):
        with StatsStore(path, run_id=RUN) as store:
            store.begin_attempt(attempt, reading(attempt - 1))
            log_epoch(store, attempt)

    with RunStatusReader(path, RUN) as read:
        found = read()

    assert found is not None
    assert (found.state, found.attempt, found.epochs) == ("running", 2, 2)


def test_statistics_that_vanish_under_a_run_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "stats.sqlite"
    with StatsStore(path, run_id=RUN) as store:
        store.begin_attempt(1, reading(0))
    read = RunStatusReader(path, RUN)
    assert read() is not None

    path.unlink()

    with pytest.raises(StatsError):
        read()
