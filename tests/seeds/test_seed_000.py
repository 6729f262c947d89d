"""Seed 000: three coarse hooks with parameter lists of their own. Only the import line is changed.

The bodies the seed leaves as comments are filled in with the least that shows the hook was called right.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hookloop
from hookloop.checkpoints import Checkpoint, Retention
from hookloop.core import HookManager, TrainingLoop
from hookloop.hooks import TrainerHook
from hookloop.testing import ToyWorkload


class MetricsHook(TrainerHook):
    """Handles all metrics collection and reporting."""

    def __init__(self, wandb_run, stats_client, timer, verbose=True):
        self.wandb_run = wandb_run
        self.stats_client = stats_client
        self.timer = timer
        self.verbose = verbose
        self.seen = []

    def on_rollout_end(self, rollout_stats, trainer_state):
        self.seen.append(("rollout_end", dict(rollout_stats), trainer_state.agent_step))

    def on_epoch_end(self, losses_stats, experience, policy, optimizer, trainer_state):
        self.seen.append(("epoch_end", dict(losses_stats), policy, trainer_state.epoch))


class CheckpointHook(TrainerHook):
    """Handles all checkpoint operations."""

    def __init__(self, checkpoint_manager, checkpoint_interval: int, wandb_checkpoint_interval: int):
        self.checkpoint_manager = checkpoint_manager
        self.checkpoint_interval = checkpoint_interval
        self.wandb_checkpoint_interval = wandb_checkpoint_interval
        self.latest_wandb_uri = None

    def on_training_start(self, trainer_state):
        self.checkpoint_manager.append(("load", trainer_state.epoch))

    def on_epoch_end(self, policy, optimizer, trainer_state, eval_scores, wandb_run):
        self.checkpoint_manager.append(("save", trainer_state.epoch, policy, eval_scores, wandb_run))
        trainer_state.latest_checkpoint_uri = f"memory://{trainer_state.epoch}"


class EvaluationHook(TrainerHook):
    """Handles policy evaluation."""

    def __init__(self, eval_config, curriculum):
        self.eval_config = eval_config
        self.curriculum = curriculum
        self.eval_scores = {}
        self.seen = []

    def on_epoch_end(self, checkpoint_hook, trainer_state, stats_client, wandb_run):
        self.seen.append((checkpoint_hook, trainer_state.latest_checkpoint_uri, stats_client, wandb_run))
        self.eval_scores = {"mean": trainer_state.epoch}

    def get_eval_scores(self):
        return self.eval_scores


class Trainer:
    """Stands in for the seed's trainer: ``add_hook`` and ``train`` over the toy workload."""

    def __init__(self, policy):
        self.hooks = HookManager()
        self.loop = TrainingLoop(ToyWorkload(epochs=2), self.hooks)
        self.loop.context.model = policy

    def add_hook(self, hook):
        self.hooks.add(hook)

    def train(self):
        self.loop.run()


def test_the_example_usage_of_the_seed_runs() -> None:
    policy, saved, wandb_run, stats_client = object(), [], None, object()
    trainer = Trainer(policy)
    trainer.hooks.provide("stats_client", stats_client)

    checkpoint_hook = CheckpointHook(saved, 1, 10)
    trainer.add_hook(checkpoint_hook)
    metrics_hook = MetricsHook(wandb_run, stats_client, timer=None, verbose=True)
    trainer.add_hook(metrics_hook)
    eval_hook = EvaluationHook({"every": 1}, curriculum=None)
    trainer.add_hook(eval_hook)
    trainer.train()

    assert saved == [("load", 0), ("save", 1, policy, {}, None), ("save", 2, policy, {}, None)]
    assert [name for name, *_ in metrics_hook.seen] == ["rollout_end", "epoch_end", "rollout_end", "epoch_end"]
    assert metrics_hook.seen[1][2] is policy
    assert metrics_hook.seen[1][1].keys() == {"loss"}
    assert [uri for _, uri, _, _ in eval_hook.seen] == ["memory://1", "memory://2"]
    assert all(hook is checkpoint_hook and client is stats_client for hook, _, client, _ in eval_hook.seen)
    assert eval_hook.get_eval_scores() == {"mean": 2}


def test_hooks_can_be_registered_and_are_called_in_sequence() -> None:
    calls: list[str] = []

    class First(TrainerHook):
        def on_epoch_end(self, trainer_state):
            calls.append("first")

    class Second(TrainerHook):
        def on_epoch_end(self, trainer_state):
            calls.append("second")

    trainer = Trainer(policy=None)
    trainer.add_hook(First())
    trainer.add_hook(Second())

    trainer.train()

    assert calls == ["first", "second", "first", "second"]


def test_a_hook_whose_service_is_absent_is_present_but_inactive() -> None:
    class WandbHook(TrainerHook):
        def __init__(self):
            self.logged = 0

        def on_epoch_end(self, wandb_run, trainer_state):
            if wandb_run is not None:
                self.logged += 1

    hook = WandbHook()
    trainer = Trainer(policy=None)
    trainer.add_hook(hook)

    trainer.train()

    assert hook.logged == 0


def test_the_seeds_hooks_work_on_the_real_trainer() -> None:
    import hookloop.rl as rl

    envs = rl.make_envs("CartPole-v1", num_envs=4)
    policy = rl.make_policy(envs.observation, envs.action, hidden=(16, 16), seed=0)
    trainer = rl.Trainer(policy=policy, envs=envs, losses=[rl.PPO()], config=rl.TrainerConfig(horizon=32))
    saved: list[tuple[object, ...]] = []

    checkpoint_hook = CheckpointHook(saved, 1, 10)
    trainer.add_hook(checkpoint_hook)
    metrics_hook = MetricsHook(None, None, timer=None)
    trainer.add_hook(metrics_hook)
    eval_hook = EvaluationHook({"every": 1}, curriculum=None)
    trainer.add_hook(eval_hook)
    trainer.train(total_env_steps=300)

    epochs = trainer.state.epoch
    assert saved[0] == ("load", 0)
    assert [entry[1] for entry in saved[1:]] == list(range(1, epochs + 1))
    assert all(entry[2] is policy for entry in saved[1:])
    losses = [seen[1] for seen in metrics_hook.seen if seen[0] == "epoch_end"]
    assert all({"ppo/policy", "ppo/value", "ppo/entropy"} <= set(stats) for stats in losses)
    assert eval_hook.get_eval_scores() == {"mean": epochs}
    assert all(seen[0] is checkpoint_hook for seen in eval_hook.seen)


def test_the_trainer_imports_training_modules_only() -> None:
    """No tracker, database, display or file system in what a trainer needs: looked up in a fresh process."""
    import subprocess
    import sys

    program = "import hookloop.rl.trainer, sys; print('\\n'.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()

    assert not {"rich", "sqlalchemy", "wandb", "tensorboard", "upath", "psutil", "hookloop.storage"} & set(loaded)


def small_trainer(**options: Any) -> Any:
    import hookloop.rl as rl

    envs = rl.make_envs("CartPole-v1", num_envs=4)
    policy = rl.make_policy(envs.observation, envs.action, hidden=(16, 16), seed=0)
    return rl.Trainer(policy=policy, envs=envs, losses=[rl.PPO()], config=rl.TrainerConfig(horizon=32), **options)


def weights_of(trainer: Any) -> dict[str, Any]:
    return {name: tensor.tolist() for name, tensor in trainer.policy.state_dict().items()}


def test_the_checkpoint_hook_of_the_seed_is_ours_and_saves_at_its_interval(tmp_path: Path) -> None:
    config = SimpleNamespace(checkpoint=SimpleNamespace(checkpoint_interval=2, wandb_checkpoint_interval=4))
    checkpoint_manager = hookloop.CheckpointManager(tmp_path, retention=Retention(keep_last=100))
    trainer = small_trainer()

    if config.checkpoint.checkpoint_interval > 0:
        checkpoint_hook = hookloop.CheckpointHook(
            checkpoint_manager, config.checkpoint.checkpoint_interval, config.checkpoint.wandb_checkpoint_interval
        )
        trainer.add_hook(checkpoint_hook)
    trainer.train(total_env_steps=1_000)

    saved = [each.manifest for each in checkpoint_manager.store.sound()]
    epochs = trainer.state.epoch
    assert [each.epochs for each in saved if each.kind == "periodic"] == list(range(2, epochs + 1, 2))
    assert (saved[-1].kind, saved[-1].epochs) == ("final", epochs)
    assert trainer.state.latest_checkpoint_uri == (tmp_path / saved[-1].name).as_uri()
    assert trainer.state.latest_saved_epoch == epochs


def test_an_evaluation_after_the_checkpoint_hook_finds_the_uri_of_a_durable_checkpoint(tmp_path: Path) -> None:
    trainer = small_trainer()
    manager = hookloop.CheckpointManager(tmp_path, asynchronous=False)
    checkpoint_hook = hookloop.CheckpointHook(manager, 1, 10)
    eval_hook = EvaluationHook({"every": 1}, curriculum=None)

    trainer.add_hook(checkpoint_hook)
    trainer.add_hook(eval_hook, stage="publish")
    trainer.train(total_env_steps=300)

    uris = [uri for _, uri, _, _ in eval_hook.seen]
    assert len(set(uris)) == len(uris) == trainer.state.epoch
    assert all(hook is checkpoint_hook for hook, *_ in eval_hook.seen)


def test_checkpoints_are_published_at_the_seeds_second_interval_and_at_the_end(tmp_path: Path) -> None:
    class Recording:
        kind = "wandb"

        def __init__(self) -> None:
            self.epochs: list[tuple[int, str]] = []

        def publish(self, checkpoint: Checkpoint) -> str:
            self.epochs.append((checkpoint.manifest.epochs, checkpoint.manifest.kind))
            return f"wandb://{checkpoint.id}"

    sink = Recording()
    trainer = small_trainer()
    manager = hookloop.CheckpointManager(tmp_path, asynchronous=False)
    trainer.add_hook(hookloop.CheckpointHook(manager, 1, 3, sinks=[sink]))

    trainer.train(total_env_steps=900)

    last = trainer.state.epoch
    assert sink.epochs == [*((epoch, "periodic") for epoch in range(3, last + 1, 3)), (last, "final")]
    assert trainer.state.latest_wandb_uri is not None
    assert trainer.state.latest_wandb_uri.startswith("wandb://")


def test_the_loaded_run_goes_on_with_the_same_bits(tmp_path: Path) -> None:
    whole = small_trainer()
    whole.train(total_env_steps=1_000)
    first = small_trainer()
    first.add_hook(hookloop.CheckpointHook(hookloop.CheckpointManager(tmp_path), 1, 10))
    first.train(total_env_steps=400)

    second = small_trainer()
    second.add_hook(hookloop.CheckpointHook(hookloop.CheckpointManager(tmp_path), 1, 10, resume=True))
    second.train(total_env_steps=1_000)

    assert second.state.attempt == 2
    assert weights_of(second) == weights_of(whole)


def test_our_metrics_hook_is_created_and_registered_as_the_seed_does(tmp_path: Path) -> None:
    from hookloop.hooks import MetricsHook as OurMetricsHook
    from hookloop.monitoring import Stopwatch
    from hookloop.stats import StatsClient, StatsReader

    wandb_run, timer, verbose = None, Stopwatch(), False
    stats_client = StatsClient(tmp_path / "stats.sqlite", run_id="run")
    trainer = Trainer(policy=None)

    if wandb_run or stats_client or verbose:
        metrics_hook = OurMetricsHook(wandb_run, stats_client, timer, verbose)
        trainer.add_hook(metrics_hook)
    trainer.train()

    with StatsReader(tmp_path / "stats.sqlite") as reader:
        assert [point.value for point in reader.metric("run", "metric/epoch")] == [1.0, 2.0]
    assert timer.seconds("total") > 0


def test_the_evaluation_hook_of_the_seed_is_ours_and_feeds_metrics_and_checkpoints(tmp_path: Path) -> None:
    from hookloop.config.settings import EvaluationConfig
    from hookloop.rl.config import EnvConfig

    config = SimpleNamespace(evaluation=EvaluationConfig(schedule="every 2 epochs", episodes=2))
    curriculum = None
    manager = hookloop.CheckpointManager(tmp_path, retention=Retention(keep_last=100), asynchronous=False)
    trainer = small_trainer(env=EnvConfig(id="CartPole-v1", num_envs=4))
    seen: list[dict[str, float]] = []

    trainer.add_hook(hookloop.CheckpointHook(manager, 1, 10))
    trainer.add_hook(lambda eval_scores: seen.append(dict(eval_scores)), on="epoch_end", stage="report", name="metrics")
    if config.evaluation:
        eval_hook = hookloop.EvaluationHook(config.evaluation, curriculum)
        trainer.add_hook(eval_hook)
    trainer.train(total_env_steps=500)

    assert [bool(scores) for scores in seen] == [False, True, False, True, True]  # the last is the end
    saved = {each.manifest.epochs: each.manifest.metrics for each in manager.store.sound()}
    assert [saved[epoch].get("eval/return/mean") for epoch in (1, 2, 3, 4, 5)] == [
        scores.get("return/mean") for scores in seen
    ]
    assert eval_hook.get_eval_scores() == seen[-1]


def test_without_settings_the_evaluation_hook_of_the_seed_is_present_but_inactive() -> None:
    eval_hook = hookloop.EvaluationHook(None, None)
    trainer = small_trainer()
    trainer.add_hook(eval_hook)

    trainer.train(total_env_steps=200)

    assert eval_hook.get_eval_scores() == {}
    assert trainer.state.failures == {}
