"""Normalised observations and rewards: the right statistics, over the right rows, and undone for nobody's returns."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from hookloop.rl.envs import (
    EnvMismatchError,
    Envs,
    EnvStateError,
    NormalizedObservations,
    NormalizedRewards,
    RunningStatistics,
    SyncEnvs,
    make_envs,
    wrap_envs,
)
from hookloop.rl.envs.random_actions import random_actions

from .counting import CountingVectorEnv
from .test_spaces import EchoEnv


def counting(mode: AutoresetMode) -> Envs:
    return wrap_envs(CountingVectorEnv(mode=mode))


def act(envs: Envs, steps: int) -> None:
    for _ in range(steps):
        envs.step(np.zeros(envs.num_envs, dtype=np.int64))


def every_observation(mode: AutoresetMode, steps: int) -> np.ndarray:
    """What the environments showed: after the reset, on every step, and at ends that were reset over."""
    envs = counting(mode)
    envs.reset(0)
    seen = [np.array(envs.obs)]
    for _ in range(steps):
        act(envs, 1)
        seen.append(np.array(envs.obs))
        if not envs.has_fillers:
            seen.append(np.asarray(envs.final_obs)[envs.terminated | envs.truncated])
    return np.concatenate(seen).astype(np.float64)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_every_observation_counts_once(mode: AutoresetMode) -> None:
    envs = NormalizedObservations(counting(mode))
    envs.reset(0)

    act(envs, 25)

    seen = every_observation(mode, 25)
    statistics = envs.statistics["array"]
    assert statistics.count == len(seen)
    np.testing.assert_allclose(statistics.mean, seen.mean(axis=0))
    np.testing.assert_allclose(statistics.variance, seen.var(axis=0))
    # Each of the two environments shows every (episode, step) once, so none was counted twice.
    assert max(Counter(map(tuple, seen.tolist())).values()) == 2


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_observations_and_last_observations_use_the_same_statistics(mode: AutoresetMode) -> None:
    inner = counting(mode)
    envs = NormalizedObservations(inner, clip=1.5)
    envs.reset(0)

    for _ in range(12):
        act(envs, 1)
        statistics = envs.statistics["array"]

        def expected(raw: Any, statistics: RunningStatistics = statistics) -> np.ndarray:
            return np.clip((raw - statistics.mean) / np.sqrt(statistics.variance + 1e-12), -1.5, 1.5)

        ended = envs.terminated | envs.truncated
        np.testing.assert_allclose(np.asarray(envs.obs), expected(inner.obs), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(
            np.asarray(envs.final_obs)[ended], expected(inner.final_obs)[ended], rtol=1e-4, atol=1e-5
        )


def test_normalised_observations_are_float32_and_integers_pass_through() -> None:
    space = spaces.Dict(
        {"pixels": spaces.Box(0, 255, (2,), np.uint8), "speed": spaces.Box(-5.0, 5.0, (1,), np.float64)}
    )
    inner = SyncEnvs([EchoEnv(space, spaces.Discrete(2)) for _ in range(4)])
    envs = NormalizedObservations(inner)
    envs.reset(0)
    act(envs, 30)

    assert {key: spec.dtype for key, spec in envs.observation.arrays.items()} == {"pixels": "uint8", "speed": "float32"}
    assert isinstance(envs.obs, dict)
    assert isinstance(inner.obs, dict)
    assert (envs.obs["pixels"] == inner.obs["pixels"]).all()
    assert envs.obs["speed"].dtype == np.float32
    assert np.abs(envs.obs["speed"]).max() < 5.0


def test_there_must_be_something_to_normalise() -> None:
    with pytest.raises(EnvMismatchError, match="all observations are integers"):
        NormalizedObservations(make_envs("FrozenLake-v1", 1))


def discounted_returns(mode: AutoresetMode, steps: int, gamma: float) -> list[float]:
    envs = counting(mode)
    envs.reset(0)
    running, seen = np.zeros(2), []
    for _ in range(steps):
        act(envs, 1)
        running = running * gamma + envs.rewards
        seen += running[envs.valid].tolist()
        running[envs.terminated | envs.truncated] = 0.0
    return seen


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_rewards_are_scaled_by_the_deviation_of_discounted_returns(mode: AutoresetMode) -> None:
    inner = counting(mode)
    envs = NormalizedRewards(inner, gamma=0.9, clip=1e6)
    envs.reset(0)

    act(envs, 25)

    returns = discounted_returns(mode, 25, 0.9)
    assert envs.statistics.count == len(returns)
    np.testing.assert_allclose(envs.rewards, inner.rewards / np.std(returns), rtol=1e-5)


def test_large_rewards_are_clipped() -> None:
    envs = NormalizedRewards(counting(AutoresetMode.SAME_STEP), gamma=0.5, clip=0.01)
    envs.reset(0)
    act(envs, 9)

    assert envs.rewards.max() == np.float32(0.01)


def test_finished_episodes_keep_the_returns_the_environment_gave() -> None:
    plain = make_envs("Pendulum-v1", 3, kwargs={"max_episode_steps": 10}, seed=2)
    inner = make_envs("Pendulum-v1", 3, kwargs={"max_episode_steps": 10})
    normal = NormalizedRewards(NormalizedObservations(inner), gamma=0.99)
    normal.reset(2)
    generator = np.random.default_rng(0)

    for _ in range(25):
        actions = random_actions(plain.action, 3, generator)
        plain.step(actions)
        normal.step(actions)
        assert normal.finished == plain.finished


def test_frozen_statistics_stay() -> None:
    observations = NormalizedObservations(counting(AutoresetMode.SAME_STEP))
    envs = NormalizedRewards(observations, gamma=0.9)
    envs.reset(0)
    act(envs, 5)
    before = (observations.statistics["array"].mean.tolist(), float(envs.statistics.variance))

    observations.freeze()
    envs.freeze()
    act(envs, 20)

    assert (observations.statistics["array"].mean.tolist(), float(envs.statistics.variance)) == before


def test_an_evaluation_takes_over_the_statistics_alone() -> None:
    training = NormalizedObservations(counting(AutoresetMode.SAME_STEP))
    training.reset(0)
    act(training, 9)
    evaluation = NormalizedObservations(wrap_envs(CountingVectorEnv(plans=[((4, "terminated"),)])))
    evaluation.freeze()

    evaluation.load_statistics(training.statistics_state())
    evaluation.reset(0)

    statistics = training.statistics["array"]
    expected = (np.zeros(2) - statistics.mean) / statistics.scale()
    np.testing.assert_allclose(np.asarray(evaluation.obs)[0], expected, rtol=1e-6)


def test_statistics_of_other_observations_are_refused() -> None:
    envs = NormalizedObservations(counting(AutoresetMode.SAME_STEP))

    with pytest.raises(EnvStateError, match=r"of \['speed'\], the observations here are \['array'\]"):
        envs.load_statistics({"speed": {}})


@pytest.mark.parametrize(
    ("gamma", "clip", "words"), [(1.5, 10.0, "gamma must lie"), (0.9, 0.0, "clip must be above 0")]
)
def test_settings_that_mean_nothing_are_refused(gamma: float, clip: float, words: str) -> None:
    with pytest.raises(EnvMismatchError, match=words):
        NormalizedRewards(counting(AutoresetMode.SAME_STEP), gamma=gamma, clip=clip)
