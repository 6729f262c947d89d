"""What environments tell at the end of an episode arrives with the episode, however they are stepped."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from hookloop.rl.collector import episode_stats
from hookloop.rl.envs.base import Episode
from hookloop.rl.envs.gymnasium_envs.loop import SyncEnvs
from hookloop.rl.envs.gymnasium_envs.vector import VectorEnvs
from hookloop.rl.envs.infos import numbers, row_numbers


class Telling(gymnasium.Env[Any, Any]):
    """Ends after ``length`` steps and tells of itself, at every step."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, length: int) -> None:
        self.length, self.steps = length, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        info = {"success": self.steps == self.length, "stats": {"coins": 10 * self.steps}, "map": "cave"}
        return np.zeros(1, np.float32), 1.0, self.steps == self.length, False, info


def sync_envs() -> SyncEnvs:
    return SyncEnvs([Telling(2), Telling(3)])


def vector_envs(mode: AutoresetMode) -> VectorEnvs:
    return VectorEnvs(SyncVectorEnv([lambda: Telling(2), lambda: Telling(3)], autoreset_mode=mode))


@pytest.mark.parametrize(
    "make",
    [sync_envs, *(lambda mode=mode: vector_envs(mode) for mode in AutoresetMode)],
    ids=["in turn", *(mode.name for mode in AutoresetMode)],
)
def test_the_infos_of_the_last_step_belong_to_the_episode(make: Any) -> None:
    envs = make()
    envs.reset(seed=0)
    episodes: list[Episode] = []
    for _ in range(4):
        envs.step(np.zeros(2, np.int64))
        episodes += envs.finished

    first = {episode.env_index: episode for episode in reversed(episodes)}
    assert dict(first[0].infos) == {"success": 1.0, "stats/coins": 20.0}
    assert dict(first[1].infos) == {"success": 1.0, "stats/coins": 30.0}


def test_an_episode_without_infos_has_none() -> None:
    envs = SyncEnvs([gymnasium.make("CartPole-v1")])
    envs.reset(seed=0)
    while not envs.finished:
        envs.step(np.zeros(1, np.int64))

    assert envs.finished[0].infos == {}


def test_only_finite_numbers_count() -> None:
    told = {"a": np.float32(1.5), "b": np.array([2]), "c": float("nan"), "d": "text", "e": np.zeros(3), "f": True}

    assert numbers(told) == {"a": 1.5, "b": 2.0, "f": 1.0}


def test_a_row_of_a_vector_environment_holds_what_that_environment_told() -> None:
    infos = {
        "score": np.array([1.0, 0.0]),
        "_score": np.array([True, False]),
        "env_id": np.array([0, 1]),
        "deep": {"gold": np.array([3, 4])},
    }

    assert row_numbers(infos, 0) == {"score": 1.0, "deep/gold": 3.0}
    assert row_numbers(infos, 1) == {"deep/gold": 4.0}


def test_rollout_stats_hold_lists_by_name_and_the_return_is_ours() -> None:
    episodes = [Episode(0, 1.0, 2, {"success": 1.0, "return": 99.0}), Episode(1, 3.0, 4)]

    assert episode_stats(episodes) == {"success": [1.0], "return": [1.0, 3.0], "length": [2.0, 4.0]}
