"""The check says in sentences what is wrong with an environment, and nothing about one that is right."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

from hookloop.rl.envs import Problem, SyncEnvs, check_envs, make_envs, steps_per_second

from .counting import CountingEnv
from .test_layers import DriftEnv, OpaqueEnv


class UnseededEnv(DriftEnv):
    def drift(self, action: int) -> None:
        self.value += random.Random().random()


class LongEnv(CountingEnv):
    def __init__(self) -> None:
        super().__init__(((10**6, "terminated"),))


class LateNanEnv(LongEnv):
    def step(self, action: int) -> tuple[Any, float, bool, bool, dict]:
        seen, reward, terminated, truncated, info = super().step(action)
        return seen, float("nan") if self.steps == 30 else reward, terminated, truncated, info


class GlobalEnv(DriftEnv):
    """Keeps its number outside of itself."""

    kept: ClassVar[list[float]] = [0.0]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        self.kept[0] = 0.0
        return super().reset(seed=seed)

    def drift(self, action: int) -> None:
        self.kept[0] += self.np_random.normal()
        self.value = self.kept[0]


class QuietEnv(CountingEnv):
    def __init__(self) -> None:
        super().__init__(((3, "terminated"), (4, "truncated")))


@pytest.mark.parametrize("id", ["CartPole-v1", "Taxi-v4", "FrozenLake-v1", "Pendulum-v1"])
def test_a_sound_environment_has_no_problems(id: str) -> None:
    assert check_envs(make_envs(id, 3), steps=210) == []


def test_a_sound_environment_of_ones_own_has_no_problems() -> None:
    assert check_envs(SyncEnvs([QuietEnv(), QuietEnv()]), steps=50) == []


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (
            UnseededEnv,
            "error",
            "The same seed and the same actions gave other obs on step 1, so no run can be repeated.",
        ),
        (LateNanEnv, "error", "LateNanEnv (environment 0) gave a reward with the value nan, expected finite numbers."),
        (GlobalEnv, "error", "After a save and a load, obs differed on step 1 from what came without them"),
        (
            OpaqueEnv,
            "warning",
            "A resume cannot go on in the middle of an episode but begins new ones, because OpaqueEnv",
        ),
        (LongEnv, "warning", "No episode ended in 40 steps of random actions"),
        (CountingEnv, "warning", "Both terminated and truncated were set on one step, 6 times"),
    ],
)
def test_a_problem_is_a_sentence(make: Callable[[], CountingEnv], kind: str, words: str) -> None:
    problems = check_envs(SyncEnvs([make()]), steps=40)

    assert [problem.kind for problem in problems] == [kind]
    assert words in str(problems[0])
    assert str(problems[0]).endswith((".", ")"))


def test_the_speed_is_measured_in_steps_of_single_environments() -> None:
    fastest = max(steps_per_second(make_envs("CartPole-v1", 16), seconds=0.05) for _ in range(3))

    assert fastest > 1000.0


def test_a_problem_reads_as_its_message() -> None:
    assert str(Problem("error", "It is broken.")) == "It is broken."


def test_the_environments_can_be_used_afterwards() -> None:
    envs = make_envs("CartPole-v1", 2)
    check_envs(envs, steps=20)

    envs.reset(0)
    envs.step(np.zeros(2, dtype=np.int64))

    assert envs.rewards.tolist() == [1.0, 1.0]
