"""What ``hookloop eval`` plays, by what the settings of a run say."""

from __future__ import annotations

import pytest

from hookloop.cli.evaluate import task_for
from hookloop.curriculum import CurriculumConfig, Lesson, LessonEnv
from hookloop.errors import UnknownNameError
from hookloop.rl.config import EnvConfig, RLConfig

LESSONS = CurriculumConfig(
    lessons={"short": Lesson(env=LessonEnv(kwargs={"max_episode_steps": 6})), "long": Lesson(env=LessonEnv())}
)
PLAIN = RLConfig(env=EnvConfig(id="CartPole-v1"))
TAUGHT = PLAIN.model_copy(
    update={"curriculum": LESSONS, "evaluation": PLAIN.evaluation.model_copy(update={"suite": {"other": {}}})}
)


@pytest.mark.parametrize(
    ("settings", "suite", "expected"),
    [
        (PLAIN, None, ["training"]),
        (PLAIN, "all", ["training"]),
        (TAUGHT, None, ["short", "long"]),
        (TAUGHT, "long", ["long"]),
        (TAUGHT, "training", ["training"]),
        (TAUGHT, "all", ["short", "long", "other"]),
        (TAUGHT, "other", ["other"]),
    ],
)
def test_what_is_played(settings: RLConfig, suite: str | None, expected: list[str]) -> None:
    simulations = task_for(settings, suite, {"episodes": 3}).simulations()

    assert [name for _, name in simulations] == expected


def test_an_unknown_lesson_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'short'"):
        task_for(TAUGHT, "shrot", {})
