"""Train in a process, kill it at a random instant, go on, and compare the end with that of a run nobody killed.

Another workload joins with one entry in ``WORKLOADS``: a function that takes hooks and returns a loop to run.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from hookloop.checkpoints import CheckpointManager, CheckpointStore, Retention
from hookloop.core import HookContext, TrainerState, TrainingLoop
from hookloop.curriculum import CurriculumConfig, Dependency, Lesson, LessonEnv
from hookloop.hooks import CheckpointHook, EarlyStoppingHook, EmaHook, StatsHook
from hookloop.rl import build_trainer
from hookloop.rl.config import EnvConfig, PolicyConfig, PPOConfig, RLConfig, TrainerConfig
from hookloop.rl.values import Linear
from hookloop.selfplay import GameConfig, NetworkConfig, OpponentsConfig, SelfPlayConfig
from hookloop.selfplay import build_trainer as build_self_play
from hookloop.stats import StatsClient
from hookloop.storage.disk import Disk
from hookloop.supervised import Trainer, TrainingConfig
from hookloop.testing import ToyWorkload
from tests.faults.endings import Ending, ending, require_same, stats_of
from tests.faults.processes import fork

Build = Callable[[list[object]], TrainingLoop]

LEFTOVERS = (".tmp-", ".trash-")
EARLIEST_SECONDS, LATEST_SECONDS = 0.005, 0.150
LATEST_SHARE = 0.3
"""On a slow machine a process is given this share of the time a whole run takes there, so that it gets somewhere."""


def toy(hooks: list[object], epochs: int = 10) -> TrainingLoop:
    return TrainingLoop(ToyWorkload(epochs, seed=5), hooks, state=TrainerState(seed=5))


def reinforcement_learning(
    env: EnvConfig, epochs: int = 8, memory: str = "none", curriculum: CurriculumConfig | None = None
) -> Build:
    horizon = 16
    config = RLConfig(
        env=env,
        curriculum=curriculum,
        policy=PolicyConfig(hidden=(16, 16), memory=memory),
        losses={"ppo": PPOConfig(entropy_coefficient=0.01, value_clip=0.2)},
        trainer=TrainerConfig(
            horizon=horizon,
            num_minibatches=2,
            update_epochs=2,
            segment_length=8,
            values={"optimizer.learning_rate": Linear(1e-3, 0.0)},
        ),
    )

    def build(hooks: list[object]) -> TrainingLoop:
        trainer = build_trainer(config, hooks=hooks, seed=3)
        trainer.workload.total_env_steps = epochs * horizon * env.num_envs
        return trainer.loop

    return build


LESSONS = CurriculumConfig(
    lessons={
        "short": Lesson(env=LessonEnv(kwargs={"max_episode_steps": 6}), success_return=5.0),
        "long": Lesson(dependencies=(Dependency(lesson="short"),), success_return=20.0),
    },
    slots=2,
    minimum_episodes=3,
)


def supervised(hooks: list[object], epochs: int = 8) -> TrainingLoop:
    with torch.random.fork_rng():
        torch.manual_seed(5)
        model = nn.Sequential(nn.Linear(4, 16), nn.Dropout(0.2), nn.Tanh(), nn.Linear(16, 1))
    x = torch.linspace(-1, 1, 4 * 45).reshape(45, 4)
    config = TrainingConfig(
        epochs=epochs, batch_size=6, gradient_accumulation_steps=3, learning_rate=1e-2, lr_schedule="cosine", seed=5
    )
    trainer = Trainer(model, training_config=config, hooks=[*hooks, EmaHook(), EarlyStoppingHook(patience=100)])
    trainer.prepare((x, x.sum(1, keepdim=True)), (x[:9], x[:9].sum(1, keepdim=True)))
    return trainer.loop


def self_play(hooks: list[object], epochs: int = 6) -> TrainingLoop:
    config = SelfPlayConfig(
        game=GameConfig(name="connect_four", num_envs=4, max_moves=30, opening_moves=4),
        network=NetworkConfig(kind="windows", channels=4, hidden=(16,)),
        opponents=OpponentsConfig(share=0.5, capacity=2, every_epochs=2),
        trainer=TrainerConfig(horizon=16, num_minibatches=2, update_epochs=2, gamma=0.99),
    )
    trainer = build_self_play(config, hooks=hooks, seed=3)
    trainer.workload.total_env_steps = epochs * 16 * 4
    return trainer.loop


WORKLOADS: dict[str, Build] = {
    "toy": toy,
    "native CartPole": reinforcement_learning(EnvConfig(id="CartPole-v1", num_envs=4, mode="native")),
    "normalised Pendulum": reinforcement_learning(
        EnvConfig(id="Pendulum-v1", num_envs=2, mode="sync", normalise_observations=True, normalise_rewards=True)
    ),
    "GRU": reinforcement_learning(EnvConfig(id="CartPole-v1", num_envs=2, mode="native"), memory="gru"),
    "lessons": reinforcement_learning(
        EnvConfig(id="CartPole-v1", num_envs=2, mode="sync"), memory="gru", curriculum=LESSONS
    ),
    "supervised": supervised,
}
if find_spec("pyspiel") is not None:  # OpenSpiel, the extra 'games'
    WORKLOADS["self-play"] = self_play


class MetricsTable:
    """Keeps a row for each epoch and the name of each checkpoint it was told of.

    Each row holds the metrics before and after the epoch, and draws from the random streams that every program has.
    """

    name = "table"
    saved = ("rows", "checkpoints")

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.checkpoints: list[str] = []
        self._before: dict[str, Any] = {}

    def on_epoch_start(self, ctx: HookContext) -> None:
        self._before = dict(ctx.metrics)

    def on_epoch_end(self, ctx: HookContext) -> None:
        draws = {"python": random.random(), "numpy": float(np.random.random()), "torch": float(torch.rand(()))}
        self.rows.append({"epoch": ctx.state.epoch, "before": self._before, "after": dict(ctx.metrics), **draws})

    def on_checkpoint_saved(self, ctx: HookContext) -> None:
        self.checkpoints.append(ctx.checkpoint.name)


def train(build: Build, folder: Path, *, asynchronous: bool, interval: int = 1, disk: Disk | None = None) -> None:
    """Make one attempt: go on from the latest checkpoint, if there is one, and train to the end."""
    random.seed(11)
    np.random.seed(11)
    torch.manual_seed(11)
    manager = CheckpointManager(folder, retention=Retention(keep_last=2), asynchronous=asynchronous, disk=disk)
    hook = CheckpointHook(manager, checkpoint_interval=interval, resume=True)
    statistics = StatsHook(StatsClient(stats_of(folder), run_id="run"))
    result = build([MetricsTable(), hook, statistics]).run()
    assert result.outcome == "completed", result


@dataclass
class Tally:
    """What a campaign of kills has hit."""

    kills: int = 0
    """Those that came before the end of the process."""
    in_writes: int = 0
    """Those that left a checkpoint half written."""
    in_removals: int = 0
    """Those that left a checkpoint half removed."""
    late: int = 0
    """Processes that ended before they were to be killed."""
    runs: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(Tally)))

    def __str__(self) -> str:
        return (
            f"{self.runs} runs identical after {self.kills} kills ({self.in_writes} in a write, "
            f"{self.in_removals} in a removal; {self.late} processes were done before)"
        )


class Campaign:
    """Kills the process of a run again and again, until it ends all the same; then the next run."""

    def __init__(self, build: Build, root: Path, *, asynchronous: bool, seed: int) -> None:
        self._build = build
        self._root = root
        root.mkdir()
        self._asynchronous = asynchronous
        self._random = random.Random(seed)
        self._latest_seconds = LATEST_SECONDS
        self.tally = Tally()

    def run(self, kills: int) -> Tally:
        """Kill so many times, and compare each run's end with that of one in a single piece."""
        expected = self._whole()
        while self.tally.kills < kills:
            folder = self._root / f"run-{self.tally.runs}"
            while not self._attempt(folder, is_spared=self.tally.kills >= kills):
                pass
            require_same(ending(folder), expected)
            assert leftovers(folder) == []
            self.tally.runs += 1
        return self.tally

    def _whole(self) -> Ending:
        folder, began = self._root / "whole", time.monotonic()
        assert self._attempt(folder, is_spared=True)
        self._latest_seconds = max(LATEST_SECONDS, LATEST_SHARE * (time.monotonic() - began))
        return ending(folder)

    def _attempt(self, folder: Path, *, is_spared: bool) -> bool:
        """Train in a process; False if it was killed."""
        output = self._root / f"{folder.name}.txt"
        child = fork(lambda: train(self._build, folder, asynchronous=self._asynchronous), output)
        if not is_spared and not child.ends_within(self._random.uniform(EARLIEST_SECONDS, self._latest_seconds)):
            if child.kill():
                self._count(folder)
                return False
        elif not is_spared:
            self.tally.late += 1
        assert child.code() == 0, child.output
        return True

    def _count(self, folder: Path) -> None:
        self.tally.kills += 1
        found = leftovers(folder)
        self.tally.in_writes += any(name.startswith(".tmp-") for name in found)
        self.tally.in_removals += any(name.startswith(".trash-") for name in found)


def leftovers(folder: Path) -> list[str]:
    """Return what a killed process left half done."""
    return [path.name for path in folder.glob(".*") if path.name.startswith(LEFTOVERS)]


def names(folder: Path) -> list[str]:
    """Return the names of a run's checkpoints."""
    return CheckpointStore(folder).names()
