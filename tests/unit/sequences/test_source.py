"""A rollout worker that draws sequences: groups of responses, evaluations, weights by version."""

from __future__ import annotations

from typing import Any

import pytest

from hookloop.curriculum import CurriculumConfig, Lesson, LessonEnv
from hookloop.errors import ConfigError, UnknownNameError
from hookloop.evaluation import Wanted
from hookloop.sequences import SequenceSource, SequenceSourceConfig
from hookloop.supervised.config import GPTConfig
from hookloop.worker import Rollout, RolloutWorker, WorkerConfig, WorkerError

LESSONS = {"copy": Lesson(env=LessonEnv(kwargs={"longest": 2, "alphabet": "ab"})), "sums": Lesson(
    env=LessonEnv(id="arithmetic")
)}  # fmt: skip
CONFIG = SequenceSourceConfig(model=GPTConfig(layers=1, heads=2, width=16), group_size=3)


def make(**changes: Any) -> SequenceSource:
    return SequenceSource(CONFIG.model_copy(update=changes), LESSONS, seed=1)


def plain(rollouts: list[Rollout]) -> list[Any]:
    return [
        (each.reward, each.length, each.group, {name: array.tolist() for name, array in each.arrays.items()})
        for each in rollouts
    ]


def test_responses_to_a_prompt_share_a_group() -> None:
    source = make()
    rollouts = source.generate("sums", 7, seed=4)

    assert [each.group for each in rollouts] == [f"sums/4/{number}" for number in (0, 0, 0, 1, 1, 1, 2)]
    for each in rollouts:
        assert each.length == len(each.arrays["response_tokens"]) == len(each.arrays["log_probs"])
        assert (each.arrays["log_probs"] <= 0).all()
        assert each.about["prompt"] == source.vocabulary.decode(each.arrays["prompt_tokens"].tolist())
        assert each.reward == source.lessons["sums"].reward(each.about["prompt"], each.about["response"])


def test_rollouts_are_a_function_of_lesson_count_seed_and_weights_alone() -> None:
    source, other = make(), make()
    other.generate("copy", 2, seed=9)

    assert plain(source.generate("copy", 6, seed=4)) == plain(other.generate("copy", 6, seed=4))
    assert plain(source.generate("copy", 6, seed=4)) != plain(other.generate("copy", 6, seed=5))


def test_weights_are_taken_over_by_value_and_their_version_stands_in_every_rollout() -> None:
    source, trained = make(), SequenceSource(CONFIG, LESSONS, seed=2)
    expected = plain(trained.generate("copy", 6, seed=4))

    source.take_weights(5, trained.model.state_dict())
    trained.model.symbol.weight.data.zero_()

    rollouts = source.generate("copy", 6, seed=4)
    assert plain(rollouts) == expected
    assert {each.weight_version for each in rollouts} == {5}


def test_weights_of_another_model_are_refused() -> None:
    wide = SequenceSource(CONFIG.model_copy(update={"model": GPTConfig(layers=1, heads=2, width=8)}), LESSONS)

    with pytest.raises(WorkerError, match="version 3 do not fit the worker's model"):
        make().take_weights(3, wide.model.state_dict())


def test_an_unknown_lesson_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'sums'"):
        make().generate("sum", 1, seed=0)
    with pytest.raises(ConfigError, match="needs the lessons"):
        SequenceSource(CONFIG, {})


def test_a_worker_draws_sequences_and_its_curriculum_is_told() -> None:
    config = WorkerConfig(
        source=CONFIG,
        curriculum=CurriculumConfig(lessons=LESSONS, micro_eval_frequency=2, eval_frequency=3),
        steps=4, rollouts_per_step=6, weights="initial",
    )  # fmt: skip
    seen: list[Rollout] = []
    worker = RolloutWorker(config)
    worker.add_hook(lambda ctx: seen.extend(ctx.batch), name="see", on="step_end")
    worker.run()

    found = make().play("copy", Wanted(episodes=4, seed=0))
    assert found.measures["total_count"] == 4
    assert worker.curriculum is not None
    assert sum(worker.curriculum.training[name].episodes for name in LESSONS) == 24
    assert all(worker.curriculum.evaluated_success(name) is not None for name in LESSONS)
    assert [len(each.arrays["response_tokens"]) for each in seen] == [each.length for each in seen]
    assert len(seen) == 24
