"""How many workers are worth it."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from hookloop.errors import MissingExtraError, UnknownNameError
from hookloop.pools import InlinePool, PoolSettings, PoolUsageError, TaskCosts, choose_workers, make_pool
from hookloop.pools.choice import WORTH, seconds_with
from hookloop.pools.measuring import measure_costs, usable_cores
from tests.unit.pools.performers import Roller, weights

TIMES = st.floats(0.0, 10.0)
COSTS = st.builds(TaskCosts, seconds=TIMES, cpu_seconds=TIMES, transport_seconds=TIMES, weights_seconds=TIMES)


@given(COSTS, st.integers(1, 64), st.integers(1, 16))
def test_the_choice_is_never_expected_to_be_slower_than_no_workers(costs: TaskCosts, tasks: int, cores: int) -> None:
    choice = choose_workers(costs, tasks=tasks, cores=cores)
    assert choice.inline_seconds == tasks * costs.seconds
    if choice.workers:
        assert choice.seconds == seconds_with(choice.workers, costs, tasks=tasks, cores=cores)
        assert choice.seconds <= 1.05 * WORTH * choice.inline_seconds
    else:
        assert choice.seconds == choice.inline_seconds


def test_tasks_that_compute_get_a_worker_for_each_core() -> None:
    assert choose_workers(TaskCosts(0.1, 0.1), tasks=8, cores=2).workers == 2


def test_tasks_that_wait_get_more_workers_than_there_are_cores() -> None:
    assert choose_workers(TaskCosts(0.1, 0.001), tasks=8, cores=2).workers == 8
    assert choose_workers(TaskCosts(0.1, 0.001), tasks=8, cores=2, most=3).workers == 3


def test_there_are_not_more_workers_than_tasks_keep_busy() -> None:
    assert choose_workers(TaskCosts(0.1, 0.001), tasks=3, cores=8).workers == 3


@pytest.mark.parametrize(
    "costs",
    [
        TaskCosts(0.0003, 0.0003),  # as long as it takes to wake a worker
        TaskCosts(0.01, 0.01, transport_seconds=0.006),
        TaskCosts(0.01, 0.01, weights_seconds=0.05),
    ],
)
def test_cheap_tasks_are_computed_in_the_calling_process(costs: TaskCosts) -> None:
    assert choose_workers(costs, tasks=8, cores=2).workers == 0


def test_one_core_gets_no_worker_for_tasks_that_compute() -> None:
    assert choose_workers(TaskCosts(0.1, 0.1), tasks=8, cores=1).workers == 0


class Sleeper(Roller):
    def take_weights(self, version: int, tensors: Mapping[str, Tensor]) -> None:
        assert version == 0

    def perform(self, payload: Any) -> Any:
        time.sleep(payload)
        return payload


def test_what_a_task_waits_is_told_from_what_it_computes() -> None:
    costs = measure_costs(Sleeper, 0.03, weights())
    assert costs.seconds >= 0.03
    assert costs.cpu_seconds < 0.01
    assert 0.0 < costs.transport_seconds < costs.seconds
    assert choose_workers(costs, tasks=8, cores=usable_cores()).workers > 1


def test_measuring_finds_that_a_trivial_task_is_not_worth_a_worker() -> None:
    costs = measure_costs(Roller, {"seed": 0, "steps": 1}, weights())
    assert choose_workers(costs, tasks=8, cores=usable_cores()).workers == 0


class Disturbed(Roller):
    """Is kept from working four times out of five, and once for long, as on a machine that others use."""

    def __init__(self) -> None:
        super().__init__()
        self._times = 0

    def perform(self, payload: Any) -> Any:
        self._times += 1
        if self._times % 5:
            time.sleep(0.1 if self._times == 2 else 0.004)
        return super().perform(payload)


def test_what_others_do_to_the_machine_is_not_taken_for_what_a_task_costs() -> None:
    costs = measure_costs(Disturbed, {"seed": 0, "steps": 1}, weights())
    assert costs.seconds < 0.004


def test_no_workers_are_the_calling_process_whatever_the_engine() -> None:
    assert isinstance(make_pool("process", 0, Roller), InlinePool)


def test_what_no_engine_can_do_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'process'"):
        make_pool("processes", 2, Roller)
    with pytest.raises(PoolUsageError, match="has no workers, got 2"):
        make_pool("inline", 2, Roller)
    with pytest.raises(PoolUsageError, match="cannot have -1 workers"):
        make_pool("process", -1, Roller)
    with pytest.raises(PoolUsageError, match="task_seconds_limit must be above 0, got 0"):
        PoolSettings(task_seconds_limit=0)
    with pytest.raises(PoolUsageError, match="cannot set -1 of 'robot' aside"):
        PoolSettings(resources={"robot": -1})
    with pytest.raises(UnknownNameError, match="There is no engine 'process://head:1'"):
        make_pool("process://head:1", 1, Roller)


def test_an_engine_that_is_not_installed_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("hookloop.pools.ray_")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"The engine 'ray://head:10001' needs the extra 'ray'"):
        make_pool("ray://head:10001", 1, Roller)
