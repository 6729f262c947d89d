"""What every engine promises: the same bits from any number of workers, whatever happens to them."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path

import psutil
import pytest
import torch

from hookloop.pools import (
    NoWorkersError,
    PoolSettings,
    PoolUsageError,
    Result,
    Task,
    TaskFailedError,
    TaskKey,
    WorkerPool,
    gather,
    make_pool,
)
from tests.unit.pools.performers import Closing, Extremes, Roller, Trouble, never_made, weights
from tests.waiting import wait_until

ENGINES_WITH_WORKERS = ["process"]
NUMBERS = [("inline", 0), *((engine, workers) for engine in ENGINES_WITH_WORKERS for workers in (1, 2, 4))]
MakePoolWith = Callable[..., WorkerPool]


@pytest.fixture(params=ENGINES_WITH_WORKERS)
def open_pool(request: pytest.FixtureRequest) -> Generator[MakePoolWith]:
    """Make pools of an engine that have weights, and close them."""
    opened: list[WorkerPool] = []

    def open_one(workers: int = 2, make: Callable[[], Roller] = Trouble, **settings: float) -> WorkerPool:
        opened.append(make_pool(request.param, workers, make, settings=PoolSettings(**settings)))
        opened[-1].publish(1, weights())
        return opened[-1]

    yield open_one
    for pool in opened:
        pool.close()


def tasks(count: int, **payload: object) -> list[Task]:
    return [Task(TaskKey(slot, 0), {"seed": slot, **payload}) for slot in range(count)]


def expected(wanted: list[Task]) -> list[Result]:
    pool = make_pool("inline", 0, Roller)
    pool.publish(1, weights())
    return gather(pool, wanted)


def require_equal(results: list[Result], others: list[Result]) -> None:
    assert [(result.key, result.version) for result in results] == [(other.key, other.version) for other in others]
    for result, other in zip(results, others, strict=True):
        assert torch.equal(result.value["states"], other.value["states"])
        assert result.value["last"].tobytes() == other.value["last"].tobytes()


def pids(pool: WorkerPool) -> list[int]:
    return list(pool.pids)  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(("engine", "workers"), NUMBERS)
def test_any_number_of_workers_gives_the_same_bits(engine: str, workers: int) -> None:
    wanted = tasks(9, steps=200)  # some results are big enough not to fit a message
    pool = make_pool(engine, workers, Roller)
    try:
        pool.publish(1, weights())
        require_equal(gather(pool, wanted), expected(wanted))
        pool.publish(2, weights(1))
        again = gather(pool, wanted)
    finally:
        pool.close()
    assert {result.version for result in again} == {2}
    assert not torch.equal(again[0].value["states"], expected(wanted)[0].value["states"])


@pytest.mark.parametrize("kills", [4, pytest.param(100, marks=[pytest.mark.faults, pytest.mark.timeout(600)])])
def test_killed_workers_change_nothing(kills: int, open_pool: MakePoolWith) -> None:
    pool = open_pool(2)
    wanted = tasks(6 * kills, seconds=0.005)  # four can be done between two looks, and each look kills once at most
    chance = random.Random(0)
    for task in wanted:
        pool.submit(task)
    found: dict[TaskKey, Result] = {}
    killed: list[int] = []
    while len(found) < len(wanted):
        found |= {result.key: result for result in pool.poll()}
        alive = [pid for pid in pids(pool) if pid not in killed]
        if alive and len(killed) < kills and len(found) >= 3 * len(killed):
            killed.append(chance.choice(alive))
            os.kill(killed[-1], signal.SIGKILL)

    require_equal([found[task.key] for task in wanted], expected(wanted))
    for task in tasks(2):  # the last one that was killed may have had no task
        pool.submit(task)
    wait_until(lambda: pool.poll(0.0) is not None and pool.health().deaths >= kills)
    health = pool.health()
    assert health.deaths == len(killed) == kills
    assert health.quarantined == ()


def test_a_worker_that_hangs_is_ended_and_its_task_computed_again(open_pool: MakePoolWith, tmp_path: Path) -> None:
    pool = open_pool(2, task_seconds_limit=1.0)
    hanging = Task(TaskKey(0, 0), {"seed": 0, "what": "hang", "once": str(tmp_path / "hung")})
    results = gather(pool, [hanging, *tasks(4)[1:]])

    require_equal(results, expected(tasks(4)))
    # More if the machine has kept another one waiting for a second; one task may have waited behind each.
    deaths = pool.health().deaths
    assert 1 <= deaths <= pool.health().retries <= 2 * deaths


@pytest.mark.parametrize("phase", ["computing", "waiting"])
def test_a_worker_that_is_stopped_from_outside_is_ended_too(
    phase: str, open_pool: MakePoolWith, tmp_path: Path
) -> None:
    pool = open_pool(1, task_seconds_limit=1.0)
    gather(pool, tasks(1))
    if phase == "waiting":
        os.kill(pids(pool)[0], signal.SIGSTOP)
    for task in tasks(2, until=str(tmp_path / "stopped")):
        pool.submit(task)
    if phase == "computing":
        wait_until(lambda: pool.health().phases[0] == phase)
        os.kill(pids(pool)[0], signal.SIGSTOP)
    (tmp_path / "stopped").touch()
    results = pool.poll()
    while len(results) < 2:
        results += pool.poll()

    require_equal(results, expected(tasks(2)))
    assert pool.health().deaths >= 1  # a successor that the machine keeps waiting for a second is ended, too


def test_a_task_that_raises_is_given_up_with_its_traceback_and_the_others_go_on(open_pool: MakePoolWith) -> None:
    pool = open_pool(2)
    bad = Task(TaskKey(7, 3), {"seed": 77, "what": "fail"})
    for task in [bad, *tasks(4)]:
        pool.submit(task)
    results: list[Result] = []

    def poll_for_ever() -> None:
        while True:
            results.extend(pool.poll())

    with pytest.raises(TaskFailedError) as raised:
        poll_for_ever()
    while len(results) < 4:
        results += pool.poll()

    require_equal(sorted(results, key=lambda result: result.key), expected(tasks(4)))
    assert raised.value.key == (7, 3)
    message = str(raised.value)
    assert "slot 7 in iteration 3 was given up after 2 workers (ArithmeticError: no good: seed 77)" in message
    assert "'seed': 77" in message
    assert "in fail" in message  # the line of the worker's code
    assert pool.health().quarantined == ((7, 3),)
    assert pool.poll(0.0) == []
    require_equal(gather(pool, tasks(4)), expected(tasks(4)))


def test_a_task_that_raises_once_is_computed_again(open_pool: MakePoolWith, tmp_path: Path) -> None:
    pool = open_pool(1)
    flaky = Task(TaskKey(0, 0), {"seed": 0, "what": "fail", "once": str(tmp_path / "failed")})
    require_equal(gather(pool, [flaky]), expected(tasks(1)))


def test_a_result_that_cannot_be_sent_is_a_failure_of_its_task(open_pool: MakePoolWith) -> None:
    with pytest.raises(TaskFailedError, match="pickle"):
        gather(open_pool(1), tasks(1, what="unsendable"))


def test_a_task_that_ends_three_workers_is_given_up(open_pool: MakePoolWith) -> None:
    pool = open_pool(2)
    with pytest.raises(
        TaskFailedError, match=r"slot 0 .* after 3 workers \(its worker (ended with exit code 7|is lost)"
    ):
        gather(pool, tasks(1, what="end"))
    assert pool.health().deaths == 3
    require_equal(gather(pool, tasks(4)), expected(tasks(4)))


def test_workers_that_cannot_be_made_are_an_error_with_the_reason(open_pool: MakePoolWith) -> None:
    pool = open_pool(2, never_made)
    with pytest.raises(NoWorkersError, match=r"(?s)no simulator here.*in never_made"):
        gather(pool, tasks(1))


def test_weights_that_are_published_while_workers_read_are_never_torn(open_pool: MakePoolWith) -> None:
    pool = open_pool(2, Extremes)
    found: list[Result] = []
    for version in range(2, 150):
        pool.publish(version, {"weight": torch.full((1 << 18,), float(version))})
        for slot in range(2):
            pool.submit(Task(TaskKey(slot, version), None, min_version=version))
        found += pool.poll(0.0)
    while len(found) < 2 * 148:
        found += pool.poll()
    for result in found:
        version, smallest, largest = result.value
        assert version == smallest == largest == result.version
        assert version >= result.key.iteration


def test_a_worker_that_comes_late_gets_the_weights_of_now_first(open_pool: MakePoolWith) -> None:
    pool = open_pool(1)
    gather(pool, tasks(1))
    pool.publish(5, weights(5))
    os.kill(pids(pool)[0], signal.SIGKILL)
    (result,) = gather(pool, tasks(1))
    assert result.version == 5
    assert not torch.equal(result.value["states"], expected(tasks(1))[0].value["states"])


def test_weights_of_other_shapes_reach_workers_that_are_there(open_pool: MakePoolWith) -> None:
    pool = open_pool(1)
    gather(pool, tasks(1))
    pool.publish(2, {"weight": torch.eye(3)})
    assert gather(pool, tasks(1))[0].value["last"].shape == (3,)


def test_a_slow_task_is_copied_to_an_idle_worker_and_its_first_result_counts(
    open_pool: MakePoolWith, tmp_path: Path
) -> None:
    pool = open_pool(2, copy_after_seconds=0.1)
    slow = Task(TaskKey(0, 0), {"seed": 0, "what": "hang", "once": str(tmp_path / "hung")})
    require_equal(gather(pool, [slow]), expected(tasks(1)))
    assert pool.health().deaths == 0
    assert pool.poll() == []


def test_a_worker_is_replaced_after_its_number_of_tasks(open_pool: MakePoolWith) -> None:
    pool = open_pool(1, tasks_per_worker=2)
    seen: set[int] = set()
    for _ in range(4):
        require_equal(gather(pool, tasks(1)), expected(tasks(1)))
        seen |= set(pids(pool))
    assert len(seen) >= 2
    assert pool.health().deaths == 0


def test_idle_workers_use_no_processor(open_pool: MakePoolWith) -> None:
    pool = open_pool(2)
    gather(pool, tasks(4))
    # One may have computed all tasks while the other was starting.
    wait_until(lambda: pool.poll(0.0) == [] and set(pool.health().phases.values()) == {"waiting"})
    idle = [psutil.Process(pid) for pid in pids(pool)]

    def used() -> float:
        return sum(process.cpu_times().user + process.cpu_times().system for process in idle)

    # Whatever a worker had to do before it could wait is done at some time; one that never waits is never idle.
    least = 1.0
    for _ in range(10):
        before = used()
        time.sleep(0.3)
        least = min(least, used() - before)
        if least < 0.005:  # it is counted in hundredths
            break
    assert least < 0.005


def test_what_the_caller_does_to_a_payload_later_changes_no_task(open_pool: MakePoolWith) -> None:
    pool = open_pool(1)
    (task,) = tasks(1)
    pool.submit(task)
    task.payload["seed"] = 99
    require_equal(pool.poll(), expected(tasks(1)))


def test_polling_waits_for_the_deadline_and_not_longer(open_pool: MakePoolWith, tmp_path: Path) -> None:
    pool = open_pool(1)
    gather(pool, tasks(1))
    pool.submit(tasks(1, until=str(tmp_path / "polled"))[0])
    started = time.monotonic()
    assert pool.poll(0.05) == []  # whoever waited longer would wait for ever
    assert time.monotonic() - started >= 0.05
    wait_until(lambda: (pool.health().running, pool.health().phases) == (1, {0: "computing"}))
    (tmp_path / "polled").touch()
    assert len(pool.poll()) == 1


def test_the_rules_for_tasks_and_versions_are_those_of_every_pool(open_pool: MakePoolWith) -> None:
    pool = open_pool(1)
    assert pool.poll() == []
    with pytest.raises(PoolUsageError, match="version 1 were published after version 1"):
        pool.publish(1, weights())
    with pytest.raises(PoolUsageError, match="version 4 or newer, but 1 is the newest"):
        pool.submit(Task(TaskKey(0, 0), {}, min_version=4))
    pool.submit(tasks(1)[0])
    with pytest.raises(PoolUsageError, match="on its way already"):
        pool.submit(tasks(1)[0])


def test_closing_ends_every_worker_even_one_that_hangs_and_then_nothing_is_taken(open_pool: MakePoolWith) -> None:
    pool = open_pool(2)
    gather(pool, tasks(4))
    pool.submit(tasks(1, what="hang")[0])
    processes = [psutil.Process(pid) for pid in pids(pool)]
    pool.close()
    pool.close()
    assert not any(process.is_running() for process in processes)
    with pytest.raises(PoolUsageError, match="is closed"):
        pool.submit(tasks(1)[0])


def test_every_performer_is_closed_with_its_pool_also_one_that_computes(
    open_pool: MakePoolWith, tmp_path: Path
) -> None:
    pool = open_pool(2, partial(Closing, str(tmp_path)))
    gather(pool, tasks(4))
    wait_until(lambda: "starting" not in pool.health().phases.values())
    pool.submit(tasks(1, seconds=300.0)[0])
    workers = pids(pool)
    pool.close(60.0)
    assert sorted(int(mark.name) for mark in tmp_path.iterdir()) == sorted(workers)


def test_what_cannot_be_sent_to_a_worker_is_refused_at_once() -> None:
    with pytest.raises(PoolUsageError, match="a function of a module"):
        make_pool("process", 1, lambda: Roller())
