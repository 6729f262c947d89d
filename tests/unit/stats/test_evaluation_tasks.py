from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hookloop.errors import StatsError
from hookloop.stats import EvaluationTasks, StatsReader, StatsStore
from hookloop.stats.evaluation_tasks import TaskKey
from tests.unit.stats.logged import RUN, reading

KEY = TaskKey(RUN, f"{RUN}/step-000000000010@abc", "training", 7)
CLOCKS = reading(2)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tasks(tmp_path: Path, clock: Clock) -> Any:
    with EvaluationTasks(tmp_path / "stats.sqlite", wall_time=clock) as opened:
        yield opened


def write(log: Any) -> None:
    log.log_evaluation("eval@step", {"return/mean": 3.0}, CLOCKS, episodes=2, checkpoint=KEY.checkpoint_id)


def test_to_ask_twice_is_to_ask_once(tasks: EvaluationTasks) -> None:
    assert tasks.enqueue(KEY, "file:///x")
    assert not tasks.enqueue(KEY, "file:///x")
    assert tasks.enqueue(KEY._replace(seed=8), "file:///x")
    assert tasks.enqueue(KEY._replace(suite="hard"), "file:///x")

    assert len(tasks.of_run(RUN)) == 3


def test_the_oldest_is_claimed_by_one_worker_alone(tasks: EvaluationTasks, clock: Clock) -> None:
    tasks.enqueue(KEY, "file:///first")
    clock.now += 1
    tasks.enqueue(KEY._replace(seed=8), "file:///second")

    first, second = (tasks.claim(worker, lease_seconds=60) for worker in ("a", "b"))

    assert first is not None
    assert second is not None
    assert (first.uri, second.uri) == ("file:///first", "file:///second")
    assert tasks.claim("c", lease_seconds=60) is None


def test_what_a_dead_worker_had_is_free_when_its_lease_has_ended(tasks: EvaluationTasks, clock: Clock) -> None:
    tasks.enqueue(KEY, "file:///x")
    dead = tasks.claim("dead", lease_seconds=60)
    assert dead is not None
    clock.now += 50
    assert tasks.renew(dead, "dead", lease_seconds=60)
    clock.now += 50
    assert tasks.claim("heir", lease_seconds=60) is None
    clock.now += 11

    claim = tasks.claim("heir", lease_seconds=60)

    assert claim is not None
    assert claim.tries == 2
    assert not tasks.renew(dead, "dead", lease_seconds=60)
    assert not tasks.finish(dead, "dead", CLOCKS, write)
    assert tasks.finish(claim, "heir", CLOCKS, write)


def test_a_result_is_written_with_the_task_once_and_at_its_own_clocks(tasks: EvaluationTasks, tmp_path: Path) -> None:
    with StatsStore(tmp_path / "stats.sqlite", run_id=RUN) as store:
        store.begin_attempt(1, reading(0))
        for epoch in range(1, 6):
            store.log_epoch(reading(epoch))
    tasks.enqueue(KEY, "file:///x")
    claim = tasks.claim("a", lease_seconds=60)
    assert claim is not None

    assert tasks.finish(claim, "a", CLOCKS, write)
    assert not tasks.finish(claim, "a", CLOCKS, write)

    with StatsReader(tmp_path / "stats.sqlite") as reader:
        rows = reader.evaluations(RUN)
        assert [(row["epoch"], row["after_epoch"], row["score"]) for row in rows] == [(2, 2, 3.0)]
        assert [row["state"] for row in reader.evaluation_tasks(RUN)] == ["done"]
    assert not tasks.enqueue(KEY, "file:///x")
    assert tasks.claim("a", lease_seconds=60) is None


def test_what_fails_is_tried_again_and_given_up_in_the_end(tasks: EvaluationTasks) -> None:
    tasks.enqueue(KEY, "file:///x")

    for tries in (1, 2, 3):
        claim = tasks.claim("a", lease_seconds=60)
        assert claim is not None
        assert claim.tries == tries
        assert tasks.fail(claim, "a", f"try {tries}") is (tries == 3)

    assert tasks.claim("a", lease_seconds=60) is None
    assert tasks.of_run(RUN, ("failed",)) == [(KEY, "try 3")]


def test_what_is_given_back_is_free_at_once_and_counts_as_no_try(tasks: EvaluationTasks) -> None:
    tasks.enqueue(KEY, "file:///x")
    claim = tasks.claim("a", lease_seconds=60)
    assert claim is not None

    assert tasks.release(claim, "a")

    again = tasks.claim("b", lease_seconds=60)
    assert again is not None
    assert again.tries == 1


def test_a_database_that_cannot_be_opened_is_said(tmp_path: Path) -> None:
    (tmp_path / "folder.sqlite").mkdir()

    with pytest.raises(StatsError, match="cannot be read or written"):
        EvaluationTasks(tmp_path / "folder.sqlite").enqueue(KEY, "file:///x")
