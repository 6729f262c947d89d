"""Every way in which environments reset gives the same transitions; only fillers come in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from hookloop.rl.envs import Envs, Episode, SyncEnvs, wrap_envs

from .counting import PLANS, CountingEnv, CountingVectorEnv, Plan


class Row(NamedTuple):
    """What one environment showed, was told and gave on one step."""

    acted_on: tuple[int, int]
    action: int
    reward: float
    terminated: bool = False
    truncated: bool = False
    final_obs: tuple[int, int] | None = None
    valid: bool = True


# Actions alternate 0, 1, 0, 1, ... so those that fall on a filler are 0 or 1 as it happens.
SAME_STEP_ENV_0 = [
    Row((0, 0), 0, 1.0),
    Row((0, 1), 1, 2.0, terminated=True, final_obs=(0, 2)),
    Row((1, 0), 0, 101.0),
    Row((1, 1), 1, 102.0),
    Row((1, 2), 0, 103.0, truncated=True, final_obs=(1, 3)),
    Row((2, 0), 1, 201.0, terminated=True, final_obs=(2, 1)),
    Row((3, 0), 0, 301.0),
]
SAME_STEP_ENV_1 = [
    Row((0, 0), 0, 1.0),
    Row((0, 1), 1, 2.0),
    Row((0, 2), 0, 3.0, truncated=True, final_obs=(0, 3)),
    Row((1, 0), 1, 101.0),
    Row((1, 1), 0, 102.0, terminated=True, final_obs=(1, 2)),
    Row((2, 0), 1, 201.0),
    Row((2, 1), 0, 202.0),
]
NEXT_STEP_ENV_0 = [
    Row((0, 0), 0, 1.0),
    Row((0, 1), 1, 2.0, terminated=True, final_obs=(0, 2)),
    Row((0, 2), 0, 0.0, valid=False),
    Row((1, 0), 1, 101.0),
    Row((1, 1), 0, 102.0),
    Row((1, 2), 1, 103.0, truncated=True, final_obs=(1, 3)),
    Row((1, 3), 0, 0.0, valid=False),
    Row((2, 0), 1, 201.0, terminated=True, final_obs=(2, 1)),
    Row((2, 1), 0, 0.0, valid=False),
    Row((3, 0), 1, 301.0),
]
NEXT_STEP_ENV_1 = [
    Row((0, 0), 0, 1.0),
    Row((0, 1), 1, 2.0),
    Row((0, 2), 0, 3.0, truncated=True, final_obs=(0, 3)),
    Row((0, 3), 1, 0.0, valid=False),
    Row((1, 0), 0, 101.0),
    Row((1, 1), 1, 102.0, terminated=True, final_obs=(1, 2)),
    Row((1, 2), 0, 0.0, valid=False),
    Row((2, 0), 1, 201.0),
    Row((2, 1), 0, 202.0),
    Row((2, 2), 1, 203.0, truncated=True, final_obs=(2, 3)),
]
EXPECTED = {
    AutoresetMode.SAME_STEP: (SAME_STEP_ENV_0, SAME_STEP_ENV_1),
    AutoresetMode.DISABLED: (SAME_STEP_ENV_0, SAME_STEP_ENV_1),
    AutoresetMode.NEXT_STEP: (NEXT_STEP_ENV_0, NEXT_STEP_ENV_1),
}


def by_gymnasium(mode: AutoresetMode) -> Envs:
    return wrap_envs(SyncVectorEnv([lambda plan=plan: CountingEnv(plan) for plan in PLANS], autoreset_mode=mode))


def by_hand(mode: AutoresetMode) -> Envs:
    return wrap_envs(CountingVectorEnv(mode=mode))


def by_our_loop(_mode: AutoresetMode) -> Envs:
    return SyncEnvs([CountingEnv(plan) for plan in PLANS])


def run(envs: Envs, steps: int) -> list[list[Row]]:
    envs.reset(7)
    rows: list[list[Row]] = [[] for _ in range(envs.num_envs)]
    for step in range(steps):
        acted_on = np.array(envs.obs)
        actions = np.full(envs.num_envs, step % 2, dtype=np.int64)
        envs.step(actions)
        for index in range(envs.num_envs):
            rows[index].append(_row(envs, index, acted_on, step % 2))
    return rows


def _row(envs: Envs, index: int, acted_on: np.ndarray, action: int) -> Row:
    ended = bool(envs.terminated[index] or envs.truncated[index])
    return Row(
        acted_on=_pair(acted_on[index]),
        action=action,
        reward=float(envs.rewards[index]),
        terminated=bool(envs.terminated[index]),
        truncated=bool(envs.truncated[index]),
        final_obs=_pair(np.asarray(envs.final_obs)[index]) if ended else None,
        valid=bool(envs.valid[index]),
    )


def _pair(seen: np.ndarray) -> tuple[int, int]:
    return int(seen[0]), int(seen[1])


@pytest.mark.parametrize("make", [by_gymnasium, by_hand])
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_each_mode_gives_the_steps_written_down_for_it(make: Callable[..., Envs], mode: AutoresetMode) -> None:
    expected = EXPECTED[mode]

    rows = run(make(mode), len(expected[0]))

    assert rows[0] == expected[0]
    assert rows[1] == expected[1]


def test_our_own_loop_gives_the_steps_of_the_mode_same_step() -> None:
    rows = run(by_our_loop(AutoresetMode.SAME_STEP), len(SAME_STEP_ENV_0))

    assert rows == [SAME_STEP_ENV_0, SAME_STEP_ENV_1]


@pytest.mark.parametrize("make", [by_gymnasium, by_hand])
def test_without_fillers_all_modes_give_the_same_transitions(make: Callable[..., Envs]) -> None:
    def transitions(mode: AutoresetMode) -> list[list[Row]]:
        rows = run(make(mode), 40)
        return [[row._replace(action=0) for row in env_rows if row.valid][:24] for env_rows in rows]

    assert transitions(AutoresetMode.NEXT_STEP) == transitions(AutoresetMode.SAME_STEP)
    assert transitions(AutoresetMode.DISABLED) == transitions(AutoresetMode.SAME_STEP)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_an_action_on_a_filler_reaches_no_environment(mode: AutoresetMode) -> None:
    inner = [CountingEnv(plan) for plan in PLANS]
    vector_env = SyncVectorEnv([lambda env=env: env for env in inner], autoreset_mode=mode)

    rows = run(wrap_envs(vector_env), 10)

    for env, env_rows in zip(inner, rows, strict=True):
        assert env.received == [row.action for row in env_rows if row.valid]


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_only_the_mode_next_step_has_fillers(mode: AutoresetMode) -> None:
    assert by_hand(mode).has_fillers == (mode is AutoresetMode.NEXT_STEP)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_episodes_are_counted_without_fillers(mode: AutoresetMode) -> None:
    envs = by_hand(mode)
    envs.reset(0)

    finished: list[Episode] = []
    for _ in range(20):
        envs.step(np.zeros(2, dtype=np.int64))
        finished += envs.finished

    env_0 = [episode for episode in finished if episode.env_index == 0]
    env_1 = [episode for episode in finished if episode.env_index == 1]
    assert env_0[:3] == [Episode(0, 3.0, 2), Episode(0, 306.0, 3), Episode(0, 201.0, 1)]
    assert env_1[:2] == [Episode(1, 6.0, 3), Episode(1, 203.0, 2)]


def test_the_running_episodes_show_their_return_and_length() -> None:
    envs = by_hand(AutoresetMode.NEXT_STEP)
    envs.reset(0)
    shown: list[tuple[list[float], list[int]]] = []

    for _ in range(4):
        envs.step(np.zeros(2, dtype=np.int64))
        shown.append((envs.episode_returns.tolist(), envs.episode_lengths.tolist()))

    assert shown == [([1.0, 1.0], [1, 1]), ([0.0, 3.0], [0, 2]), ([0.0, 0.0], [0, 0]), ([101.0, 0.0], [1, 0])]


def test_returns_are_summed_in_float64_though_rewards_are_float32() -> None:
    plan: Plan = ((1000, "terminated"),)

    class TenthsEnv(CountingEnv):
        def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
            seen, _, terminated, truncated, info = super().step(action)
            return seen, 0.1, terminated, truncated, info

    envs = SyncEnvs([TenthsEnv(plan)])
    envs.reset(0)
    for _ in range(1000):
        envs.step(np.zeros(1, dtype=np.int64))

    assert envs.finished == [Episode(0, pytest.approx(100.0, abs=1e-9), 1000)]
    assert envs.rewards.dtype == np.float32


def test_both_flags_on_one_step_are_counted() -> None:
    envs = by_our_loop(AutoresetMode.SAME_STEP)
    envs.reset(0)

    for _ in range(6):
        envs.step(np.zeros(2, dtype=np.int64))

    assert envs.num_double_ends == 1


def test_arrays_are_allocated_once() -> None:
    envs = by_hand(AutoresetMode.SAME_STEP)
    before = [envs.obs, envs.final_obs, envs.rewards, envs.terminated, envs.truncated, envs.valid]

    envs.reset(0)
    for _ in range(5):
        envs.step(np.zeros(2, dtype=np.int64))

    after = [envs.obs, envs.final_obs, envs.rewards, envs.terminated, envs.truncated, envs.valid]
    assert all(one is other for one, other in zip(before, after, strict=True))


def test_a_reset_in_mid_episode_forgets_what_was_running() -> None:
    envs = by_hand(AutoresetMode.NEXT_STEP)
    first = run(envs, 5)

    again = run(envs, 5)

    assert again == first
