"""Workers that are Ray actors, in one test, so that Ray starts once; the whole contract is in tests/faults."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from pathlib import Path

import psutil
import pytest
import torch

pytest.importorskip("ray", reason="the extra 'ray' is not installed")

import ray

from hookloop.pools import PoolUsageError, Result, Task, TaskFailedError, TaskKey, make_pool
from hookloop.pools.ray_engine import RayPool
from hookloop.pools.ray_runtime import ENVIRONMENT, OBJECT_STORE_BYTES
from hookloop.rl import build_trainer
from tests.behaviour.test_rl_resume import CASES
from tests.unit.pools.performers import Roller, Trouble, weights
from tests.unit.pools.test_contract import expected, require_equal, tasks


def stop_by_our_rules(number: int, frame: object) -> None:
    raise AssertionError(number)


@pytest.fixture
def own_handler() -> Generator[None]:
    before = signal.signal(signal.SIGTERM, stop_by_our_rules)
    yield
    signal.signal(signal.SIGTERM, before)


def collect(pool: RayPool, count: int) -> list[Result]:
    results: list[Result] = []
    while len(results) < count:
        results += pool.poll()
    return sorted(results, key=lambda result: result.key)


@pytest.mark.usefixtures("own_handler")
@pytest.mark.timeout(300)  # a busy machine takes half a minute to start Ray, and ten seconds for an actor
def test_workers_on_ray_keep_the_promises_of_every_pool_and_leave_nothing_behind(tmp_path: Path) -> None:
    others = psutil.Process().children(recursive=True)
    pool = RayPool(Trouble, workers=2)
    try:
        folder = require_bounds()
        require_the_same_bits_when_an_actor_is_killed(pool, tmp_path / "killed")
        require_the_same_training()
        require_that_what_raises_is_given_up(pool)
        with pytest.raises(PoolUsageError, match="Ray allows one at a time"):
            make_pool("ray://elsewhere:10001", 1, Roller)
        family = set(psutil.Process().children(recursive=True)) - set(others)
    finally:
        pool.close()

    assert len(family) > 2
    assert [process for process in family if process.is_running()] == []
    assert not folder.exists()
    assert not ray.is_initialized()
    with pytest.raises(PoolUsageError, match="is closed"):
        pool.submit(tasks(1)[0])


def require_bounds() -> Path:
    """Require that Ray is as small as it was told, and that it left this process as it was."""
    session = Path(ray._private.worker.global_worker.node.get_session_dir_path())
    assert len(str(session / "sockets" / "plasma_store")) < 107, "a longer path is none for a socket"
    assert ray.cluster_resources()["object_store_memory"] <= OBJECT_STORE_BYTES
    assert signal.getsignal(signal.SIGTERM) is stop_by_our_rules
    assert not set(ENVIRONMENT) & set(os.environ)
    return session.parent


def require_the_same_bits_when_an_actor_is_killed(pool: RayPool, killed: Path) -> None:
    """Require what none gives, also from the actors that are left, and with the newest weights."""
    pool.publish(1, weights())
    pool.submit(tasks(1)[0])
    (first,) = collect(pool, 1)
    wanted = tasks(8, steps=200, until=str(killed))
    for task in wanted:
        pool.submit(task)
    os.kill(pool.pids[first.worker % len(pool.pids)], signal.SIGKILL)
    killed.touch()
    results = collect(pool, len(wanted))

    require_equal(results, expected(wanted))
    assert pool.health().deaths == 1
    pool.publish(2, weights(1))
    pool.submit(wanted[0])
    (newer,) = collect(pool, 1)
    assert newer.version == 2
    assert not torch.equal(newer.value["states"], results[0].value["states"])


def require_the_same_training() -> None:
    """Require that a trainer whose rollouts are played on Ray learns what one without workers learns."""
    config = CASES["native"]().model_copy(update={"slots": 2, "workers": 0})
    trained = [
        build_trainer(each, seed=3) for each in (config, config.model_copy(update={"cluster": "ray", "workers": 1}))
    ]
    for trainer in trained:
        trainer.train(2 * config.trainer.horizon * config.env.num_envs)
    assert torch.equal(trained[0].optimizer.flat, trained[1].optimizer.flat)


def require_that_what_raises_is_given_up(pool: RayPool) -> None:
    """Require the error of the worker, with its traceback."""
    pool.submit(Task(TaskKey(7, 3), {"seed": 77, "what": "fail"}))
    with pytest.raises(TaskFailedError, match=r"(?s)2 workers \(ArithmeticError: no good: seed 77\).*in fail"):
        collect(pool, 1)
    assert pool.health().quarantined == ((7, 3),)
