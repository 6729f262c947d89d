"""Rollouts in processes: the bits of none, one, two and four workers are the same, and of those that are killed."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal

import psutil
import pytest

from hookloop.pools import PoolSettings, make_pool
from hookloop.pools.process import ProcessPool
from hookloop.rl import RLConfig, Trainer, build_trainer
from hookloop.rl.config import EnvConfig, PolicyConfig, TrainerConfig
from hookloop.rl.slots import RolloutFailedError
from hookloop.rl.slots.pinning import PinnedPools
from tests.behaviour.hanging_env import MARK
from tests.behaviour.test_rl_resume import ending
from tests.unit.rl.slots.envs import trainer_of
from tests.unit.rl.slots.pools import trainer_with

SIZE = 16 * 8


def config(**changes: Any) -> RLConfig:
    """Everything that has a state: normalised observations and rewards, a memory, episodes that go on."""
    return RLConfig(
        env=EnvConfig(id="CartPole-v1", num_envs=8, mode="sync", normalise_observations=True, normalise_rewards=True),
        policy=PolicyConfig(hidden=(16,), memory="gru"),
        trainer=TrainerConfig(horizon=16, num_minibatches=2, update_epochs=1, segment_length=8),
        workers=0,
        slots=4,
    ).model_copy(update=changes)


def trained(trainer: Trainer, epochs: int) -> dict[str, Any]:
    trainer.train(SIZE * epochs)
    return {**ending(trainer), "weights": trainer.optimizer.flat.tolist()}


class Killer:
    """Ends a worker in each epoch: before it begins to play, or a moment later."""

    def __init__(self, pools: list[ProcessPool], longest_seconds: float) -> None:
        self.pools = pools
        self.kills = 0
        self._longest_seconds = longest_seconds
        self._random = random.Random(0)

    def on_rollout_start(self) -> None:
        if not self.pools:
            return
        if self._longest_seconds:
            threading.Timer(self._random.uniform(0, self._longest_seconds), self.kill).start()
        else:
            self.kill()

    def kill(self) -> None:
        living = self.pools[-1].pids
        if not living:
            return  # the last one is dead, and its successor has not begun
        with suppress(ProcessLookupError):
            os.kill(self._random.choice(living), signal.SIGKILL)
            self.kills += 1


def with_kills(workers: int, epochs: int, longest_seconds: float = 0.0) -> tuple[dict[str, Any], int, Trainer]:
    pools: list[ProcessPool] = []

    def remembered(make: Any) -> ProcessPool:
        pools.append(ProcessPool(make, workers=workers))
        return pools[-1]

    trainer = trainer_with(config(), remembered)
    killer = Killer(pools, longest_seconds)
    trainer.add_hook(killer, name="killer")
    return trained(trainer, epochs), killer.kills, trainer


def test_two_workers_that_are_killed_train_the_bits_of_none() -> None:
    expected = trained(build_trainer(config(), seed=3), 2)

    found, kills, trainer = with_kills(2, 2)

    assert kills == 1, "each epoch but the first, in which the pool is started"
    assert found == expected
    assert trainer.loop.context.metrics["workers/deaths"] == kills


def test_an_environment_that_hangs_costs_its_worker_and_no_bit(tmp_path: Path) -> None:
    env = EnvConfig(id="HangingCartPole-v0", num_envs=8, mode="sync")
    expected = trained(build_trainer(config(env=env), seed=3), 2)
    mark = tmp_path / "hung"

    def impatient(make: Any) -> ProcessPool:
        return ProcessPool(
            partial(hanging_once, make, str(mark)), workers=2, settings=PoolSettings(task_seconds_limit=2)
        )

    trainer = trainer_with(config(env=env), impatient)

    assert trained(trainer, 2) == expected
    assert mark.exists()
    assert trainer.loop.context.metrics["workers/deaths"] >= 1  # more if the machine has kept one waiting so long


def hanging_once(make: Any, mark: str) -> Any:
    """Make a player in a process whose environment hangs unless the mark is there."""
    os.environ[MARK] = mark
    return make()


def test_a_run_with_workers_goes_on_without_them_and_leaves_none_behind() -> None:
    expected = trained(build_trainer(config(), seed=3), 4)
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    trainer, resumed = build_trainer(config(workers=1), seed=3), build_trainer(config(), seed=3)
    trainer.train(SIZE * 2)

    resumed.load_state_dict(trainer.state_dict())

    assert trained(resumed, 4) == expected
    left = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
    assert all(
        "forkserver" in " ".join(child.cmdline()) or "resource_tracker" in " ".join(child.cmdline()) for child in left
    )


@pytest.mark.faults
def test_an_environment_that_fails_in_every_worker_ends_the_run_with_its_seed() -> None:
    trainer = trainer_of("failing", partial(make_pool, "process", 1), slots=1)

    with pytest.raises(RolloutFailedError, match=r"slot 0 in iteration 0 .* seed \d+.*ZeroDivisionError") as raised:
        trainer.train(64)

    assert str(trainer.slots.envs.slot_seed(0)) in str(raised.value)


def one_worker(make: Any) -> ProcessPool:
    return ProcessPool(make, workers=1)


@pytest.mark.faults
def test_a_killed_worker_takes_environments_that_cannot_be_saved_with_it() -> None:
    pools: list[ProcessPool] = []

    def remembered(make: Any) -> PinnedPools:
        def start() -> ProcessPool:
            pools.append(one_worker(make))
            return pools[-1]

        return PinnedPools(start, 2)

    trainer = trainer_of("unsaved", remembered, slots=2)

    def kill(ctx: Any) -> None:
        if ctx.state.epoch == 2:
            os.kill(pools[0].pids[0], signal.SIGKILL)

    trainer.add_hook(kill, name="kill", on="rollout_start")
    trainer.train(8 * 2 * 4)

    assert trainer.loop.context.metrics["workers/begun_anew"] == 1.0
    assert trainer.loop.context.metrics["workers/deaths"] == 1.0


@pytest.mark.faults
def test_slow_environments_are_played_while_the_learner_learns() -> None:
    def seconds_per_epoch(mode: Literal["exact", "async"]) -> float:
        trainer = trainer_of("slow", partial(make_pool, "process", 2), slots=2, mode=mode, horizon=100)
        ended: list[float] = []
        trainer.add_hook(lambda ctx: time.sleep(0.15), name="slow learner", on="train_phase_start")
        trainer.add_hook(lambda ctx: ended.append(time.perf_counter()), name="look", on="epoch_end")
        trainer.train(100 * 2 * 10)
        return (ended[-1] - ended[1]) / (len(ended) - 2)

    assert seconds_per_epoch("async") < 0.9 * seconds_per_epoch("exact")


@pytest.mark.faults
@pytest.mark.timeout(900)
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_hundred_kills_change_no_bit(workers: int) -> None:
    expected = trained(build_trainer(config(), seed=3), 110)

    found, kills, _ = with_kills(workers, 110, longest_seconds=0.1)

    assert kills >= 100
    assert found == expected
