"""A trainer with a curriculum: lessons open as they are learned, hooks are told, and a resume is exact."""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from hookloop.cli.changes import changes_between
from hookloop.curriculum import (
    Curriculum,
    CurriculumConfig,
    Dependency,
    EvaluationStats,
    Lesson,
    LessonChange,
    LessonEnv,
)
from hookloop.errors import ConfigError, HookloopError
from hookloop.hooks import HealthMonitorHook
from hookloop.recipes import find_recipe
from hookloop.rl import Trainer, TrainerConfig, build_trainer
from hookloop.rl.config import EnvConfig, PolicyConfig, PPOConfig, RLConfig

EPOCHS = 8
TOTAL = EPOCHS * 32 * 8 - 200


def settings(*, mode: str = "sync", memory: str = "none", normalise: bool = False, **curriculum: Any) -> RLConfig:
    lessons = {
        "short": Lesson(env=LessonEnv(kwargs={"max_episode_steps": 10}), success_return=9.0),
        "long": Lesson(
            env=LessonEnv(kwargs={"max_episode_steps": 60}),
            dependencies=(Dependency(lesson="short"),),
            success_return=30.0,
        ),
        "other": Lesson(dependencies=(Dependency(lesson="short", threshold=0.6),), success_return=500.0),
    }
    options = {"slots": 4, "minimum_episodes": 5, "plateau_window": 3, "plateau_episodes": 4, **curriculum}
    return RLConfig(
        env=EnvConfig(
            id="CartPole-v1", num_envs=8, mode=mode, normalise_observations=normalise, normalise_rewards=normalise
        ),
        curriculum=CurriculumConfig(lessons=lessons, **options),
        policy=PolicyConfig(hidden=(16, 16), memory=memory),
        losses={"ppo": PPOConfig(entropy_coefficient=0.01)},
        trainer=TrainerConfig(horizon=32, num_minibatches=4, update_epochs=2, segment_length=8),
    )


class Evaluates:
    """Stands in for an evaluation: tells the curriculum that all goes well, or badly, at certain epochs."""

    stage = "evaluate"

    def on_epoch_end(self, ctx: Any) -> None:
        won = {4: 64, 6: 10}.get(ctx.state.epoch)
        if won is not None:
            scores = {"short": EvaluationStats(successes=won, episodes=64, mean_return=10.0)}
            ctx.trainer.workload.lessons.update_from_evaluation(scores, ctx.loop)


def ending(trainer: Trainer) -> dict[str, Any]:
    clocks = {name: value for name, value in trainer.state.clocks.reading().items() if name != "seconds"}
    assert trainer.curriculum is not None
    return {
        "clocks": clocks,
        "recent": list(trainer.workload.collector.recent),
        "losses": trainer.state.loss_stats,
        "curriculum": trainer.curriculum.state_dict(),
        "shown": trainer.state.curriculum,
        "slots": trainer.workload.lessons.state_dict() if trainer.workload.lessons else None,
    }


CASES: dict[str, dict[str, Any]] = {
    "sync": {},
    "native, with fillers": {"mode": "native"},
    "normalised": {"normalise": True},
    "gru": {"memory": "gru"},
    "lstm, native": {"memory": "lstm", "mode": "native"},
    "uniform": {"strategy": "uniform"},
}


@pytest.mark.parametrize("case", CASES)
def test_training_with_lessons_resumes_bit_for_bit(case: str) -> None:
    config = settings(**CASES[case])
    saves: dict[int, Any] = {}

    def save(ctx: Any) -> None:
        saves[ctx.state.epoch] = copy.deepcopy(whole.state_dict())

    whole = build_trainer(config, hooks=[Evaluates(), HealthMonitorHook()], seed=3)
    whole.add_hook(save, name="save", on="epoch_end", stage="checkpoint")
    whole.train(TOTAL)
    assert len({lesson for lesson, about in whole.state.curriculum["lessons"].items() if about["episodes"]}) == 3

    for epoch in (1, 3, 5):
        resumed = build_trainer(config, hooks=[Evaluates(), HealthMonitorHook()], seed=3)
        resumed.add_hook(lambda ctx: None, name="save", on="epoch_end", stage="checkpoint")
        resumed.load_state_dict(saves[epoch])
        resumed.train(TOTAL)

        assert torch.equal(resumed.optimizer.flat, whole.optimizer.flat)
        assert ending(resumed) == ending(whole)


def changes_of(config: RLConfig, *hooks: object) -> list[tuple[str | None, LessonChange]]:
    seen: list[tuple[str | None, LessonChange]] = []
    trainer = build_trainer(config, hooks=list(hooks), seed=3)
    trainer.add_hook(
        lambda ctx: seen.append((ctx.lesson_id, ctx.metadata["lesson_change"])), name="seen", on="lesson_changed"
    )
    trainer.train(TOTAL)
    return seen


def test_hooks_are_told_which_lesson_changed_to_what_and_why() -> None:
    seen = changes_of(settings(), Evaluates())

    assert all(lesson_id == change.lesson and change.why for lesson_id, change in seen)
    told = [(change.lesson, change.change) for _, change in seen]
    assert told[:2] == [("short", "unlocked"), ("short", "selected")]
    for change in (("long", "unlocked"), ("other", "unlocked"), ("short", "graduated"), ("short", "regressed")):
        assert told.count(change) == 1
    assert told.index(("short", "graduated")) < told.index(("short", "regressed"))


def test_a_lesson_is_selected_only_when_another_gets_the_most_slots() -> None:
    selected = [change.lesson for _, change in changes_of(settings()) if change.change == "selected"]

    assert all(one != other for one, other in pairwise(selected))


def test_metrics_and_state_tell_of_every_lesson() -> None:
    rows: list[dict[str, Any]] = []
    trainer = build_trainer(settings(), seed=3)
    trainer.add_hook(lambda ctx: rows.append(dict(ctx.metrics)), name="rows", on="epoch_end")
    current: list[str | None] = []
    trainer.add_hook(lambda ctx: current.append(ctx.lesson_id), name="current", on="epoch_end")

    trainer.train(TOTAL)

    last = rows[-1]
    assert last["curriculum/short/success"] == trainer.state.curriculum["lessons"]["short"]["success"]
    assert last["curriculum/short/episodes"] > 0
    assert set(current) <= {"short", "long", "other"}
    assert current[0] == "short"


def test_hooks_that_watch_do_not_change_which_lessons_are_played() -> None:
    plain, watched = build_trainer(settings(), seed=3), build_trainer(settings(), seed=3)
    watched.add_hook(HealthMonitorHook())
    watched.add_hook(lambda ctx: {"draw": ctx.rng.random()}, name="draws", on="lesson_changed")
    watched.add_hook(lambda: 1 / 0, name="fails", on="lesson_changed", on_error="disable")

    plain.train(TOTAL)
    watched.train(TOTAL)

    assert torch.equal(plain.optimizer.flat, watched.optimizer.flat)
    assert ending(plain) == ending(watched)


def test_another_seed_chooses_other_lessons() -> None:
    def plan(seed: int) -> list[list[str]]:
        plans: list[list[str]] = []
        trainer = build_trainer(settings(strategy="uniform"), seed=seed)
        assert trainer.workload.lessons is not None
        envs = trainer.workload.lessons.envs
        trainer.add_hook(lambda ctx: plans.append(sorted(envs.lessons)), name="plan", on="rollout_start")
        trainer.train(TOTAL)
        return plans

    assert plan(1) == plan(1)
    assert plan(1) != plan(2)


def test_a_curriculum_without_environments_of_lessons_is_refused() -> None:
    plain = build_trainer(settings().model_copy(update={"curriculum": None}))
    config = settings().curriculum
    assert config is not None

    with pytest.raises(ConfigError, match="SyncEnvs has none; give the trainer LessonEnvs"):
        Trainer(
            policy=plain.policy, envs=plain.envs, losses=plain.losses, config=TrainerConfig(horizon=32),
            curriculum=Curriculum(config),
        )  # fmt: skip


def test_runs_with_and_without_lessons_do_not_go_on_from_each_other() -> None:
    def build(*, has_lessons: bool) -> Trainer:
        return build_trainer(settings() if has_lessons else settings().model_copy(update={"curriculum": None}))

    with pytest.raises(HookloopError, match=r"version None"):
        build(has_lessons=False).load_state_dict(build(has_lessons=True).state_dict())
    with pytest.raises(HookloopError, match="was saved without lessons"):
        build(has_lessons=True).load_state_dict(build(has_lessons=False).state_dict())


def test_a_misspelt_lesson_in_an_override_is_refused_before_anything_is_built() -> None:
    with pytest.raises(ValidationError, match="Did you mean 'short'"):
        CurriculumConfig(lessons={"short": Lesson(), "long": Lesson(dependencies=(Dependency(lesson="shrot"),))})


def test_the_ladder_of_minigrid_trains_and_goes_on_learner_exact() -> None:
    pytest.importorskip("envpool")
    config = find_recipe("minigrid")
    assert config.curriculum is not None
    trainer, resumed = build_trainer(config, seed=0), build_trainer(config, seed=0)

    trainer.train(3 * 64 * 64)
    resumed.load_state_dict(copy.deepcopy(trainer.state_dict()))
    assert torch.equal(resumed.optimizer.flat, trainer.optimizer.flat)
    resumed.train(4 * 64 * 64)

    assert list(trainer.state.curriculum["lessons"]) == list(config.curriculum.lessons)
    assert trainer.state.curriculum["lessons"]["doorkey"]["episodes"] > 0
    assert resumed.workload.exactness == "learner-exact"
    assert resumed.state.epoch > trainer.state.epoch


def test_a_resume_may_change_thresholds_but_not_the_shape_of_the_lessons() -> None:
    before = settings().model_dump(mode="json")
    slots = settings(slots=2).model_dump(mode="json")
    threshold = settings(minimum_episodes=9).model_dump(mode="json")
    fewer = copy.deepcopy(before)
    del fewer["curriculum"]["lessons"]["other"]

    assert {change.effect for change in changes_between(before, slots)} == {"impossible"}
    assert {change.effect for change in changes_between(before, threshold)} == {"changes training"}
    assert "impossible" in {change.effect for change in changes_between(before, fewer)}
