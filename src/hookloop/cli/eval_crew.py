"""Evaluations that workers carry out, in processes of this machine or on a cluster."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from hookloop.cli.eval_worker import say, work_once, worker_name
from hookloop.cli.evaluate import use_threads
from hookloop.errors import ConfigError
from hookloop.pools import PoolSettings, Task, TaskKey, WorkerPool, make_pool

if TYPE_CHECKING:
    from torch import Tensor

Plain = Any


class EvaluationPerformer:
    """Looks for evaluations that are wanted, and carries one out; a ``hookloop.pools.Performer``.

    Args:
        source: The folder of the runs, or the URL of their database, as seen from the worker.
        name: What the workers are called; by default after their machine and process.
        lease_seconds: How long a worker may give no sign.
    """

    def __init__(self, source: str, *, name: str | None, lease_seconds: float) -> None:
        self._source, self._lease_seconds = source, lease_seconds
        own = worker_name(None)
        self._worker = own if name is None else f"{name}-{own}"
        use_threads(1)

    def take_weights(self, version: int, tensors: Mapping[str, Tensor]) -> None:
        """Take none: an evaluation is of a checkpoint."""

    def perform(self, payload: Plain) -> Plain:
        """Carry out what is there, or wait for so many seconds; return whether there was any, and what to say."""
        lines: list[str] = []
        has_worked = work_once(self._source, self._worker, self._lease_seconds, lines.append)
        if not has_worked:
            time.sleep(payload)
        return has_worked, lines

    def close(self) -> None:
        """Do nothing: what was claimed was given back."""


def evaluate_with(
    engine: str,
    workers: int,
    source: str,
    *,
    name: str | None,
    poll_seconds: float,
    lease_seconds: float,
    is_once: bool,
) -> int:
    """Have workers look for evaluations until somebody ends this, or with ``is_once`` until each has found none."""
    if workers < 1:
        raise ConfigError(f"--workers is {workers}; give 1 or more, or leave it out to evaluate in this process.")
    make = partial(EvaluationPerformer, source, name=name, lease_seconds=lease_seconds)
    # How long an evaluation takes is nobody's business; a worker that hangs loses its lease.
    pool = make_pool(engine, workers, make, settings=PoolSettings(task_seconds_limit=None))
    try:
        pool.publish(0, {})
        _attend(pool, 0.0 if is_once else poll_seconds, is_once=is_once)
    finally:
        pool.close()
    return 0


def _attend(pool: WorkerPool, poll_seconds: float, *, is_once: bool) -> None:
    busy = set(range(pool.workers))
    for slot in busy:
        pool.submit(Task(TaskKey(slot, 0), poll_seconds))
    while busy:
        for result in pool.poll():
            has_worked, lines = result.value
            for line in lines:
                say(line)
            slot, iteration = result.key
            if is_once and not has_worked:
                busy.discard(slot)
            else:
                pool.submit(Task(TaskKey(slot, iteration + 1), poll_seconds))
