"""What every pool promises, shown by the simplest one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

from hookloop.pools import InlinePool, PoolUsageError, Task, TaskKey, gather


class Scaler:
    """Multiplies its payload by its weight."""

    def __init__(self) -> None:
        self.weight = 0.0
        self.is_closed = False

    def take_weights(self, version: int, tensors: Mapping[str, Tensor]) -> None:
        self.weight = float(tensors["weight"])

    def perform(self, payload: Any) -> Any:
        return payload * self.weight

    def close(self) -> None:
        assert not self.is_closed
        self.is_closed = True


def weights(value: float) -> dict[str, Tensor]:
    return {"weight": torch.tensor(value)}


def test_results_come_in_the_order_of_the_tasks_with_the_version_that_gave_them() -> None:
    pool = InlinePool(Scaler)
    pool.publish(3, weights(2.0))
    results = gather(pool, [Task(TaskKey(slot, 0), slot) for slot in (2, 0, 1)])
    assert [(result.key.slot, result.value, result.version) for result in results] == [
        (2, 4.0, 3),
        (0, 0.0, 3),
        (1, 2.0, 3),
    ]


def test_a_task_before_the_first_weights_is_refused() -> None:
    with pytest.raises(PoolUsageError, match="never acts without"):
        InlinePool(Scaler).submit(Task(TaskKey(0, 0), 1))


def test_a_task_that_wants_newer_weights_than_there_are_is_refused() -> None:
    pool = InlinePool(Scaler)
    pool.publish(3, weights(2.0))
    with pytest.raises(PoolUsageError, match="version 4 or newer, but 3 is the newest"):
        pool.submit(Task(TaskKey(0, 0), 1, min_version=4))


def test_the_same_task_twice_is_refused_until_its_result_is_there() -> None:
    pool = InlinePool(Scaler)
    pool.publish(0, weights(2.0))
    pool.submit(Task(TaskKey(0, 0), 1))
    with pytest.raises(PoolUsageError, match="on its way already"):
        pool.submit(Task(TaskKey(0, 0), 1))
    assert [result.value for result in pool.poll()] == [2.0]
    pool.submit(Task(TaskKey(0, 0), 1))


def test_versions_only_grow() -> None:
    pool = InlinePool(Scaler)
    pool.publish(3, weights(2.0))
    with pytest.raises(PoolUsageError, match="version 3 were published after version 3"):
        pool.publish(3, weights(1.0))


def test_nothing_to_do_is_no_result_and_closing_twice_is_fine() -> None:
    pool = InlinePool(Scaler)
    assert pool.poll(0.0) == []
    pool.close()
    pool.close()
