"""The contract of all engines, kept by workers that are Ray actors: each test starts its own, which takes seconds."""

# ruff: noqa: F401 - the imported tests are collected here

from __future__ import annotations

from collections.abc import Callable, Generator

import pytest

pytest.importorskip("ray", reason="the extra 'ray' is not installed")

from hookloop.pools import PoolSettings, WorkerPool, make_pool
from hookloop.pools.ray_runtime import connect, disconnect
from tests.unit.pools.performers import Roller, Trouble, weights
from tests.unit.pools.test_contract import (
    MakePoolWith,
    test_a_result_that_cannot_be_sent_is_a_failure_of_its_task,
    test_a_slow_task_is_copied_to_an_idle_worker_and_its_first_result_counts,
    test_a_task_that_ends_three_workers_is_given_up,
    test_a_task_that_raises_is_given_up_with_its_traceback_and_the_others_go_on,
    test_a_task_that_raises_once_is_computed_again,
    test_a_worker_is_replaced_after_its_number_of_tasks,
    test_a_worker_that_comes_late_gets_the_weights_of_now_first,
    test_a_worker_that_hangs_is_ended_and_its_task_computed_again,
    test_a_worker_that_is_stopped_from_outside_is_ended_too,
    test_closing_ends_every_worker_even_one_that_hangs_and_then_nothing_is_taken,
    test_idle_workers_use_no_processor,
    test_polling_waits_for_the_deadline_and_not_longer,
    test_the_rules_for_tasks_and_versions_are_those_of_every_pool,
    test_weights_of_other_shapes_reach_workers_that_are_there,
    test_weights_that_are_published_while_workers_read_are_never_torn,
    test_what_the_caller_does_to_a_payload_later_changes_no_task,
    test_workers_that_cannot_be_made_are_an_error_with_the_reason,
)

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]


@pytest.fixture(scope="module", autouse=True)
def _ray() -> Generator[None]:
    runtime = connect("ray")
    yield
    disconnect(runtime)


@pytest.fixture
def open_pool() -> Generator[MakePoolWith]:
    opened: list[WorkerPool] = []

    def open_one(workers: int = 2, make: Callable[[], Roller] = Trouble, **settings: float) -> WorkerPool:
        opened.append(make_pool("ray", workers, make, settings=PoolSettings(**settings)))
        opened[-1].publish(1, weights())
        return opened[-1]

    yield open_one
    for pool in opened:
        pool.close()
