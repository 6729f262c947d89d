"""A small run whose checkpoints workers evaluate, as a function and as a process that kills itself half-way."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from hookloop.checkpoints import CheckpointManager, Retention
from hookloop.config.settings import EvaluationConfig
from hookloop.hooks import CheckpointHook, StatsHook
from hookloop.hooks.evaluation_presets import evaluation_hooks
from hookloop.rl import build_trainer
from hookloop.rl.config import EnvConfig, PolicyConfig, RLConfig, TrainerConfig
from hookloop.runs.folder import RunConfig, RunFolder
from hookloop.stats import EvaluationTasks, StatsClient

PER_EPOCH = 32
RUN = "remote"


def settings(url: str | None = None, **evaluation: Any) -> RLConfig:
    """Return the settings of the run: an evaluation of two episodes, every second epoch, by workers."""
    wanted = {"schedule": "every 2 epochs", "episodes": 2, "where": "worker", "record": 1, **evaluation}
    return RLConfig(
        env=EnvConfig(id="CartPole-v1", num_envs=2, mode="sync"),
        policy=PolicyConfig(hidden=(8,)),
        trainer=TrainerConfig(horizon=16, num_minibatches=2, update_epochs=1),
        evaluation=EvaluationConfig(**wanted),
        stats_url=url,
    )


def train(
    runs: Path, *, epochs: int, config: RLConfig | None = None, kill_at: int | None = None, **options: Any
) -> Any:
    """Train up to so many epochs, going on with what is there; ``kill_at`` kills the process in mid-epoch."""
    config = config or settings()
    folder = RunFolder(runs / RUN)
    is_new = not (folder.path / "config.json").exists()
    if is_new:
        folder.write_config(RunConfig("custom", 1, 1, config.model_dump(mode="json"), run_id="remote-run"))
    url = config.stats_url or folder.stats_file
    manager = CheckpointManager(folder.checkpoints, retention=Retention(keep_last=1, keep_best=0), asynchronous=False)
    hooks: list[object] = [
        CheckpointHook(manager, 1, resume=not is_new, strict=False),
        StatsHook(
            lambda: StatsClient(url, run_id="remote-run", flush_seconds=0.01),
            name=RUN, recipe="custom", seed=1, config=config.model_dump(mode="json"),
        ),
        *evaluation_hooks(config.evaluation, open_tasks=options.get("open_tasks", lambda: EvaluationTasks(url))),
    ]  # fmt: skip
    trainer = build_trainer(config, hooks=hooks, seed=1)
    trainer.state.run_id = "remote-run"
    if kill_at is not None:
        trainer.add_hook(lambda ctx: _die(ctx.state.epoch, kill_at), on="rollout_end", name="killer")
    trainer.train(epochs * PER_EPOCH)
    return trainer


def _die(epoch: int, at: int) -> None:
    if epoch == at:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    train(Path(sys.argv[1]), epochs=int(sys.argv[2]), kill_at=int(sys.argv[3]))
