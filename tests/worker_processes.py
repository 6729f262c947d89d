"""What a trainer and rollout workers do as processes of their own.

They share nothing but the folder: checkpoints, statistics, and the files by which a test tells them when to go on.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from multiprocessing.reduction import DupFd
from pathlib import Path

import torch

from hookloop.checkpoints import CheckpointManager, CheckpointStore
from hookloop.core import HookContext
from hookloop.hooks import CheckpointHook, StatsHook
from hookloop.rl import RLConfig, Trainer, TrainerConfig, build_trainer
from hookloop.rl.config import EnvConfig, PolicyConfig
from hookloop.stats import RunStatusReader, StatsClient
from hookloop.worker import (
    CheckpointWeights,
    GymnasiumSourceConfig,
    Rollout,
    RolloutWorker,
    SharedWeightsReceiver,
    WorkerConfig,
)

ENV, POLICY = EnvConfig(id="CartPole-v1", num_envs=4), PolicyConfig(hidden=(8,))
RUN, EPOCHS, HORIZON = "run", 6, 16
STATS, CHECKPOINTS, GO = "stats.sqlite", "checkpoints", "go"
PATIENCE_SECONDS = 60.0


class WaitForWorkers:
    """Holds the trainer up after its second epoch until the test says go."""

    def __init__(self, folder: Path) -> None:
        self._go = folder / GO

    def on_epoch_start(self, ctx: HookContext) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while ctx.state.epoch == 2 and not self._go.exists() and time.monotonic() < deadline:
            time.sleep(0.02)


def make_trainer(hooks: Sequence[object] = ()) -> Trainer:
    config = RLConfig(env=ENV, policy=POLICY, trainer=TrainerConfig(horizon=HORIZON))
    return build_trainer(config, hooks=hooks, seed=3)


def train(folder: Path) -> None:
    torch.set_num_threads(1)
    trainer = make_trainer(
        [
            CheckpointHook(CheckpointManager(folder / CHECKPOINTS)),
            StatsHook(lambda: StatsClient(folder / STATS, run_id=RUN)),
            WaitForWorkers(folder),
        ]
    )
    trainer.train(EPOCHS * HORIZON * ENV.num_envs)


def work(folder: Path, name: str) -> None:
    torch.set_num_threads(1)
    versions: list[int] = []

    def deliver(rollouts: Sequence[Rollout]) -> None:
        versions.extend(rollout.weight_version for rollout in rollouts)
        (folder / f"{name}.delivered").touch()

    config = WorkerConfig(
        source=GymnasiumSourceConfig(env=ENV, policy=POLICY),
        worker=ord(name),
        rollouts_per_step=2,
        max_weight_transfer_wait_seconds=0.2,
        poll_seconds=0.02,
        status_seconds=0.05,
    )
    weights = CheckpointWeights(CheckpointStore(folder / CHECKPOINTS))
    with RunStatusReader(folder / STATS, RUN) as status:
        result = RolloutWorker(config, weights=weights, status=status, deliver=deliver).run()
    stop = result.loop.stop
    told = {"outcome": result.outcome, "reason": stop.reason if stop else "", "versions": versions}
    (folder / f"{name}.json").write_text(json.dumps(told))


def echo_weights(memory: DupFd, last: int, told: Connection) -> None:
    """Tell the version and the sum of all weights that are received, until the last."""
    receiver, deadline = SharedWeightsReceiver(memory.detach()), time.monotonic() + PATIENCE_SECONDS
    version = -1
    while version < last and time.monotonic() < deadline:
        update = receiver.receive()
        if update is None:
            time.sleep(0.002)
            continue
        version = update.version
        told.send((version, {float(number) for tensor in update.tensors.values() for number in tensor.flatten()}))
