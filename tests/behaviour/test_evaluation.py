"""Evaluations of a run: they leave training alone, and their scores belong to the weights they stand beside."""

from __future__ import annotations

import copy
import json
import logging
import random
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from hookloop import CheckpointHook, CheckpointManager, register_hook_type
from hookloop.checkpoints import Retention
from hookloop.core import HookContext
from hookloop.core.global_random import save_global_random
from hookloop.errors import NoEpisodesError, RegistrationError, UnknownNameError
from hookloop.evaluation import EvaluationTask, LessonScore, Played, PlayedEpisode, Wanted
from hookloop.hooks import EvaluationHook, HeartbeatHook, HookManager, create_default_evaluation_hooks
from hookloop.hooks.replays import RunReplays
from hookloop.rl import build_trainer
from hookloop.rl.config import EnvConfig, PolicyConfig, RLConfig, StateDependentExploration, TrainerConfig
from hookloop.stats import StatsReader, StatsStore
from tests.waiting import PATIENCE_SECONDS

PER_EPOCH = 32


def settings(env: str = "CartPole-v1", mode: str = "sync", **options: Any) -> RLConfig:
    normalise = options.pop("normalise", False)
    return RLConfig(
        env=EnvConfig(id=env, num_envs=2, mode=mode, normalise_observations=normalise, normalise_rewards=normalise),
        policy=PolicyConfig(hidden=(8, 8), **options),
        trainer=TrainerConfig(horizon=16, num_minibatches=2, segment_length=8, update_epochs=1),
    )


def trainer_with(*hooks: object, config: RLConfig | None = None, epochs: int = 6) -> Any:
    trainer = build_trainer(config or settings(), seed=1, hooks=list(hooks))
    trainer.train(epochs * PER_EPOCH)
    return trainer


class ScriptedPlayer:
    """Returns one episode whose return counts the evaluations; may fail, wait, or draw from global streams."""

    def __init__(self, act: Any = None) -> None:
        self.played: list[tuple[Any, Wanted]] = []
        self.act = act

    def play(self, env: Any, wanted: Wanted) -> Played:
        self.played.append((env, wanted))
        if self.act is not None:
            self.act()
        return Played(tuple(PlayedEpisode(k, float(len(self.played)), 3, "terminated") for k in range(wanted.episodes)))


def draw_from_global_streams() -> None:
    random.random()
    np.random.random()
    torch.rand(1)


class Probe:
    """Notes the metrics and scores that hooks of later stages see."""

    stage = "report"

    def __init__(self) -> None:
        self.seen: dict[int, tuple[dict[str, float], dict[str, float]]] = {}

    def on_epoch_end(self, ctx: HookContext) -> None:
        self.seen[ctx.state.epoch] = dict(ctx.metrics), dict(ctx.state.eval_scores)


CASES: dict[str, RLConfig] = {
    "sync": settings(),
    "native": settings(mode="native"),
    "normalised": settings("Pendulum-v1", normalise=True),
    "gru": settings(memory="gru"),
    "masked": settings("Taxi-v4"),
    "state-dependent": settings("Pendulum-v1", exploration=StateDependentExploration(resample_steps=3)),
}


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_training_has_the_same_bits_with_and_without_evaluation(case: str, background: bool) -> None:
    task = EvaluationTask(schedule="every 2 epochs", episodes=2, greedy=False, record=1)
    plain = trainer_with(config=CASES[case], epochs=4)

    watched = trainer_with(EvaluationHook(task, background=background), config=CASES[case], epochs=4)

    assert watched.state.eval_scores.keys() >= {"return/mean", "success_rate"}
    assert torch.equal(plain.optimizer.flat, watched.optimizer.flat)
    assert list(plain.workload.collector.recent) == list(watched.workload.collector.recent)
    saved, seen = plain.state_dict(), watched.state_dict()
    assert str(saved["workload"]) == str(seen["workload"])


def test_the_global_random_streams_are_as_they_were() -> None:
    before = save_global_random()

    trainer_with(
        EvaluationHook(EvaluationTask(schedule="every 1 epoch"), player=ScriptedPlayer(draw_from_global_streams))
    )

    assert save_global_random() == before


def test_scores_are_metrics_of_the_same_epoch_and_never_of_the_one_before() -> None:
    probe = Probe()

    trainer_with(EvaluationHook(frequency=2, n_examples=1, player=ScriptedPlayer()), probe, epochs=5)

    assert {epoch: metrics.get("eval/return/mean") for epoch, (metrics, _) in probe.seen.items()} == {
        1: None, 2: 1.0, 3: None, 4: 2.0, 5: 3.0,
    }  # fmt: skip
    assert [scores.get("return/mean") for _, scores in probe.seen.values()] == [None, 1.0, None, 2.0, 3.0]


def test_the_scores_in_a_checkpoint_are_those_of_its_weights(tmp_path: Path) -> None:
    manager = CheckpointManager(
        tmp_path, retention=Retention(keep_last=100, metric="eval/return/mean"), asynchronous=False
    )

    trainer_with(
        EvaluationHook(frequency=2, n_examples=1, player=ScriptedPlayer()), CheckpointHook(manager, 1), epochs=5
    )

    found = {(each.manifest.epochs, each.manifest.kind): each.manifest.metrics for each in manager.store.sound()}
    assert {key: metrics.get("eval/return/mean") for key, metrics in found.items()} == {
        (1, "periodic"): None, (2, "periodic"): 1.0, (3, "periodic"): None, (4, "periodic"): 2.0,
        (5, "periodic"): 3.0, (5, "final"): 3.0,
    }  # fmt: skip
    best = manager.retention.best([each.manifest for each in manager.store.sound()])
    assert best[0].epochs == 5


def test_a_checkpoint_waits_for_the_scores_of_its_weights_from_the_thread(tmp_path: Path) -> None:
    manager = CheckpointManager(tmp_path, retention=Retention(keep_last=100), asynchronous=False)

    trainer_with(
        EvaluationHook(frequency=2, n_examples=1, player=ScriptedPlayer(), background=True, updates_curriculum=False),
        CheckpointHook(manager, 1),
        epochs=5,
    )

    found = {each.manifest.epochs: each.manifest.metrics for each in manager.store.sound()}
    assert {epoch: metrics.get("eval/return/mean") for epoch, metrics in found.items()} == {
        1: None, 2: 1.0, 3: None, 4: 2.0, 5: 3.0,
    }  # fmt: skip


def test_the_end_is_always_evaluated_and_only_once() -> None:
    player, stopping = ScriptedPlayer(), ScriptedPlayer()

    trainer_with(EvaluationHook(EvaluationTask(), player=player), epochs=3)
    asks = lambda ctx: ctx.request_stop("enough")  # noqa: E731
    trainer = build_trainer(settings(), seed=1, hooks=[EvaluationHook(frequency=2, player=stopping, n_examples=1)])
    trainer.add_hook(asks, on="epoch_end", name="asks", schedule="at 2 epochs")
    trainer.train(10 * PER_EPOCH)

    assert len(player.played) == 1
    assert len(stopping.played) == 1
    assert trainer.state.eval_scores["return/mean"] == 1.0


def test_a_run_that_failed_is_not_evaluated_at_its_end() -> None:
    player = ScriptedPlayer()
    trainer = build_trainer(settings(), seed=1, hooks=[EvaluationHook(EvaluationTask(), player=player)])

    def fail() -> None:
        raise OSError("disk full")

    trainer.add_hook(fail, on="epoch_end", name="fail")
    with pytest.raises(OSError, match="disk full"):
        trainer.train(PER_EPOCH * 3)

    assert player.played == []


def test_an_evaluation_can_be_asked_for() -> None:
    probe = Probe()
    trainer = build_trainer(
        settings(), seed=1, hooks=[EvaluationHook(EvaluationTask(), player=ScriptedPlayer()), probe]
    )
    trainer.add_hook(lambda ctx: ctx.request_evaluation(), on="rollout_end", name="asks", schedule="at 1 epochs")

    trainer.train(4 * PER_EPOCH)

    assert [epoch for epoch, (_, scores) in probe.seen.items() if scores] == [2, 4]


def test_hooks_are_told_when_an_evaluation_begins_and_what_it_found() -> None:
    told: list[tuple[str, Any, dict[str, float]]] = []

    class Listener:
        def on_evaluation_start(self, ctx: HookContext) -> None:
            told.append((ctx.event, ctx.evaluation.name, dict(ctx.metrics)))

        def on_evaluation_end(self, ctx: HookContext) -> None:
            told.append((ctx.event, ctx.evaluation.clocks["epochs"], dict(ctx.metrics)))

    trainer_with(EvaluationHook(frequency=2, n_examples=1, player=ScriptedPlayer()), Listener(), epochs=2)

    assert [each[:2] for each in told] == [("evaluation_start", "eval"), ("evaluation_end", 2)]
    assert told[1][2]["eval/return/mean"] == 1.0


@pytest.mark.parametrize("background", [False, True])
def test_a_resume_has_the_scores_and_the_next_evaluations_of_a_run_that_went_on(background: bool) -> None:
    def trainer() -> Any:
        task = EvaluationTask(schedule="every 2 epochs", episodes=2)
        return build_trainer(settings(), seed=1, hooks=[EvaluationHook(task, background=background)])

    saves: dict[int, Any] = {}
    whole = trainer()
    whole.add_hook(
        lambda ctx: saves.update({ctx.state.epoch: copy.deepcopy(whole.state_dict())}),
        on="epoch_end", name="save", stage="checkpoint",
    )  # fmt: skip
    whole.train(7 * PER_EPOCH)
    for epoch in (2, 3):
        resumed = trainer()
        resumed.add_hook(lambda ctx: None, on="epoch_end", name="save", stage="checkpoint")
        resumed.load_state_dict(saves[epoch])
        resumed.train(7 * PER_EPOCH)

        assert torch.equal(resumed.optimizer.flat, whole.optimizer.flat)
        assert resumed.state.eval_scores == whole.state.eval_scores != {}
        assert str(resumed.hooks.state_dict()) == str(whole.hooks.state_dict())


def test_a_frequency_that_never_falls_due_is_warned_of_with_the_fix(caplog: pytest.LogCaptureFixture) -> None:
    trainer_with(EvaluationHook(frequency=100, n_examples=1, player=ScriptedPlayer()), epochs=5)

    assert "the evaluation 'eval' is due 'every 100" in caplog.text
    assert "this run ends at about 5 epochs: only its end is evaluated. Evaluate at least every 1 epochs" in caplog.text


@pytest.mark.parametrize("schedule", ["every 5 epochs", "every 3 seconds", "every 160 env_steps", "never"])
def test_a_schedule_that_can_fall_due_is_not_warned_of(schedule: str, caplog: pytest.LogCaptureFixture) -> None:
    trainer_with(EvaluationHook(EvaluationTask(schedule=schedule), player=ScriptedPlayer()), epochs=5)

    assert "only its end" not in caplog.text


class NoEpisode:
    def play(self, env: Any, wanted: Wanted) -> Played:
        return Played((), wanted.episodes, "not ended within 1 seconds")


@pytest.mark.parametrize("background", [False, True])
def test_an_evaluation_without_an_episode_is_counted_as_a_failure_and_training_goes_on(background: bool) -> None:
    hook = EvaluationHook(EvaluationTask(schedule="every 2 epochs"), player=NoEpisode(), background=background)

    trainer = trainer_with(hook, epochs=4)

    assert trainer.state.clocks.epochs == 4
    failures = trainer.state.failures["EvaluationHook"]
    assert failures.count >= 1
    assert "NoEpisodesError" in failures.last_error
    assert trainer.state.eval_scores == {}


def test_or_it_ends_the_run_if_that_is_the_policy() -> None:
    trainer = build_trainer(settings(), seed=1)
    trainer.add_hook(EvaluationHook(EvaluationTask(schedule="every 1 epoch"), player=NoEpisode()), on_error="raise")

    with pytest.raises(NoEpisodesError, match="'eval' finished none of its 16 episodes"):
        trainer.train(PER_EPOCH)


class FakeCurriculum:
    def __init__(self, *ids: str) -> None:
        self.lessons = {each: SimpleNamespace(env={"id": each}) for each in ids}
        self.told: list[dict[str, Any]] = []

    def update_from_evaluation(self, stats: Any) -> None:
        self.told.append(dict(stats))


def test_micro_looks_at_the_current_lesson_and_full_at_all_and_only_full_tells_the_curriculum() -> None:
    curriculum, player = FakeCurriculum("walk", "run"), ScriptedPlayer()
    micro, full = create_default_evaluation_hooks(
        {"micro_eval_frequency": 2, "eval_frequency": 4, "eval_n_examples": 5}, curriculum
    )
    micro._given_player = full._given_player = player
    trainer = build_trainer(settings(), seed=1, hooks=[micro, full])
    trainer.loop.context.lesson_id = "run"

    trainer.train(5 * PER_EPOCH)

    played = [(env["id"], wanted.episodes) for env, wanted in player.played]
    # Epochs 2, 4 and 5 (the end) are looked at by the small one, 4 and 5 by the full one.
    assert played == [("run", 4), ("run", 4), ("walk", 5), ("run", 5), ("run", 4), ("walk", 5), ("run", 5)]
    assert [set(told) for told in curriculum.told] == [{"walk", "run"}] * 2
    assert curriculum.told[0]["walk"] == LessonScore(successes=5, episodes=5, mean_return=3.0)
    assert trainer.state.eval_scores["micro_eval/return/mean"] == 5.0
    assert trainer.state.eval_scores["walk/return/mean"] == 6.0


@pytest.mark.parametrize("off", [None, 0, -1])
def test_a_frequency_that_is_none_or_not_above_0_leaves_the_evaluation_out(off: int | None) -> None:
    made = create_default_evaluation_hooks(SimpleNamespace(micro_eval_frequency=off, eval_frequency=7))

    assert [(hook.task.name, hook.frequency, hook.task.episodes) for hook in made] == [("eval", 7, 64)]
    assert create_default_evaluation_hooks({"micro_eval_frequency": off, "eval_frequency": off}) == []


def test_the_defaults_are_small_and_often_and_full_and_seldom() -> None:
    micro, full = create_default_evaluation_hooks(None)

    assert (micro.frequency, micro.task.episodes, micro.task.scope, micro.task.updates_curriculum) == (
        10, 4, "lesson", False,
    )  # fmt: skip
    assert (full.frequency, full.task.episodes, full.task.scope, full.task.updates_curriculum) == (
        100, 64, "lessons", True,
    )  # fmt: skip


def test_what_updates_the_curriculum_cannot_run_in_a_thread() -> None:
    with pytest.raises(RegistrationError, match="updates the curriculum, and so changes training"):
        EvaluationHook(frequency=2, background=True)


def test_an_unknown_lesson_is_refused_with_the_nearest() -> None:
    hook = EvaluationHook(EvaluationTask(scope="lesson", schedule="every 1 epoch"), FakeCurriculum("walk"))
    trainer = build_trainer(settings(), seed=1)
    trainer.add_hook(hook, on_error="raise")
    trainer.loop.context.lesson_id = "wolk"

    with pytest.raises(UnknownNameError, match="Did you mean 'walk'"):
        trainer.train(PER_EPOCH)


def test_evaluations_are_kept_with_the_clocks_and_the_policy_they_belong_to(tmp_path: Path) -> None:
    client = StatsStore(tmp_path / "stats.sqlite", run_id="run")
    task = EvaluationTask(schedule="every 2 epochs", episodes=3, suite={"hard": {"num_envs": 1}})
    trainer = build_trainer(settings(), seed=1, hooks=[EvaluationHook(task)])
    trainer.hooks.provide("stats_client", client)

    trainer.train(3 * PER_EPOCH)
    client.close()

    with StatsReader(tmp_path / "stats.sqlite") as reader:
        rows = reader.evaluations("run")
    assert [(row["name"], row["epoch"], row["episodes"]) for row in rows] == [
        ("eval/hard", 2, 3), ("eval/training", 2, 3), ("eval/hard", 3, 3), ("eval/training", 3, 3),
    ]  # fmt: skip
    assert rows[0]["about"]["category"] == "suite"
    assert rows[0]["about"]["policy_version"] == 2
    assert rows[0]["scores"]["return/mean_low"] <= rows[0]["score"] <= rows[0]["scores"]["return/mean_high"]


def test_the_heartbeat_goes_on_during_a_long_evaluation(tmp_path: Path) -> None:
    file = tmp_path / "heartbeat.json"
    beats: set[float] = set()

    def wait_for_beats() -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(beats) < 3 and time.monotonic() < deadline:
            if file.exists():
                beats.add(json.loads(file.read_text())["monotonic"])
            time.sleep(0.01)

    hook = EvaluationHook(EvaluationTask(), player=ScriptedPlayer(wait_for_beats))

    trainer_with(HeartbeatHook(file, interval_seconds=0.05), hook, epochs=1)

    assert len(beats) >= 3


class Hanging(gymnasium.Env):
    """Never returns from its third step."""

    observation_space = gymnasium.make("CartPole-v1").observation_space
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(4, np.float32), {}

    def step(self, action: int) -> Any:
        self.steps += 1
        if self.steps == 3:
            threading.Event().wait(300)
        return np.zeros(4, np.float32), 0.0, False, False, {}


def test_an_environment_that_hangs_costs_its_deadline_and_not_the_run(caplog: pytest.LogCaptureFixture) -> None:
    gymnasium.register("Hanging-v0", lambda: Hanging(), disable_env_checker=True)
    scores: dict[str, float] = {}
    try:
        for max_seconds in (0.5, 5.0, 50.0):  # on a busy machine, the good episodes need more time
            task = EvaluationTask(episodes=2, suite={"hanging": {"id": "Hanging-v0"}}, max_seconds=max_seconds)
            with caplog.at_level(logging.ERROR):
                trainer = trainer_with(EvaluationHook(task), epochs=2)
            assert trainer.state.outcome == "completed"
            scores = dict(trainer.state.eval_scores)
            if scores.get("training/episodes") == 2:
                break
    finally:
        gymnasium.registry.pop("Hanging-v0")

    assert (scores["hanging/episodes"], scores["training/episodes"]) == (0, 2)
    assert f"'hanging' finished none of its 2 episodes: not ended within {max_seconds:g} seconds" in caplog.text


def test_a_thread_of_the_managers_has_no_policy_to_play_with_and_the_error_says_what_to_do() -> None:
    trainer = build_trainer(settings(), seed=1)
    trainer.add_hook(EvaluationHook(EvaluationTask(schedule="every 1 epoch")), background=True, name="thread")

    trainer.train(PER_EPOCH)

    assert "give it background=True, and not the manager" in trainer.state.failures["thread"].last_error


def test_a_configuration_can_ask_for_an_evaluation() -> None:
    register_hook_type("scoring")(type("Scoring", (EvaluationHook,), {}))
    hooks = HookManager()

    hooks.add_config([{"use": "scoring", "args": {"frequency": 5, "n_examples": 3, "eval_type": "probe"}}])
    hooks.add_config([{"use": "scoring", "args": {"eval_config": {"schedule": "every 7 epochs"}}}])

    tasks = [hook.task for hook in hooks.get_hooks()]
    assert [(task.name, task.episodes) for task in tasks] == [("probe", 3), ("eval", 16)]


def test_recorded_episodes_are_kept_with_their_evaluation(tmp_path: Path) -> None:
    sink = RunReplays(tmp_path / "replays", keep=3)
    hook = EvaluationHook(EvaluationTask(schedule="every 2 epochs", episodes=2, record=2), replays=sink)
    links: list[dict[str, str]] = []

    trainer = build_trainer(settings(), seed=1, hooks=[hook])
    trainer.add_hook(lambda ctx: links.append(dict(ctx.evaluation.replays)), on="evaluation_end", name="links")
    trainer.train(4 * PER_EPOCH)

    kept = sink.folder.all()
    assert [kept_one.about["policy_version"] for kept_one in kept] == [2, 4, 4]  # the newest three
    assert [len(each) for each in links] == [2, 2]
    assert {each.path.as_uri() for each in kept} <= {uri for each in links for uri in each.values()}
    assert kept[-1].about["return"] in hook.result.scores[("training", "training")].returns
