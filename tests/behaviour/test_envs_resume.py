"""Environments saved in mid-episode go on with the same bits in fresh ones: N + N equals 2N."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hookloop.core.plain import require_plain
from hookloop.rl.envs import Envs, NormalizedObservations, NormalizedRewards, make_envs
from hookloop.rl.envs.random_actions import random_actions
from tests.unit.rl.envs.saving import through_a_file

NUM_ENVS = 3
STEPS_AFTER = 300


def results(envs: Envs) -> dict[str, Any]:
    """Everything the face shows, as bytes; of the last observations only those that mean something."""
    ended = envs.terminated | envs.truncated
    obs = envs.obs if isinstance(envs.obs, dict) else {"": envs.obs}
    final_obs = envs.final_obs if isinstance(envs.final_obs, dict) else {"": envs.final_obs}
    arrays = {f"obs/{key}": array for key, array in obs.items()}
    arrays |= {f"final_obs/{key}": array[ended] for key, array in final_obs.items()}
    arrays |= {
        "rewards": envs.rewards,
        "terminated": envs.terminated,
        "truncated": envs.truncated,
        "valid": envs.valid,
        "returns": envs.episode_returns,
        "lengths": envs.episode_lengths,
    }
    if envs.action_masks is not None:
        arrays["masks"] = envs.action_masks
    return {name: array.tobytes() for name, array in arrays.items()}


def assert_resumes_exactly(saved: Envs, fresh: Envs, *, steps_before: int) -> None:
    generator = np.random.default_rng(0)
    saved.reset(2)
    for _ in range(steps_before):
        saved.step(random_actions(saved.action, NUM_ENVS, generator, saved.action_masks))
    assert saved.exactness == "bit-exact"
    state = saved.state_dict()
    require_plain(state, "the state")

    fresh.load_state_dict(through_a_file(state))

    assert results(fresh) == results(saved)
    for step in range(STEPS_AFTER):
        actions = random_actions(saved.action, NUM_ENVS, generator, saved.action_masks)
        saved.step(actions)
        fresh.step(actions)
        assert results(fresh) == results(saved), f"step {step}"
        assert fresh.finished == saved.finished


@pytest.mark.parametrize(
    ("id", "mode"),
    [
        ("CartPole-v1", "native"),
        ("CartPole-v1", "sync"),
        ("CartPole-v1", "async"),
        ("Acrobot-v1", "sync"),
        ("Pendulum-v1", "sync"),
        ("MountainCar-v0", "sync"),
        ("MountainCarContinuous-v0", "sync"),
        ("FrozenLake-v1", "sync"),
        ("Taxi-v4", "sync"),
        ("CliffWalking-v1", "sync"),
        ("Blackjack-v1", "sync"),
    ],
)
def test_environments_go_on_with_the_same_bits(id: str, mode: Any) -> None:
    # Episodes of at most 50 steps, saved after 33: the time limit is in the middle of its count.
    options: dict[str, Any] = {"mode": mode, "kwargs": {"max_episode_steps": 50}}
    saved, fresh = make_envs(id, NUM_ENVS, **options), make_envs(id, NUM_ENVS, **options)
    try:
        assert_resumes_exactly(saved, fresh, steps_before=33)
    finally:
        saved.close()
        fresh.close()


@pytest.mark.parametrize("steps_before", [0, 1, 49, 50, 51])
@pytest.mark.parametrize("mode", ["native", "sync"])
def test_the_moment_of_the_save_does_not_matter(mode: Any, steps_before: int) -> None:
    # With episodes of at most 10 steps, these moments lie before, on and after their ends.
    options: dict[str, Any] = {"mode": mode, "kwargs": {"max_episode_steps": 10}}
    saved, fresh = make_envs("CartPole-v1", NUM_ENVS, **options), make_envs("CartPole-v1", NUM_ENVS, **options)

    assert_resumes_exactly(saved, fresh, steps_before=steps_before)


@pytest.mark.parametrize("mode", ["native", "sync"])
def test_normalised_environments_go_on_with_the_same_bits(mode: Any) -> None:
    def envs() -> Envs:
        inner = make_envs("CartPole-v1", NUM_ENVS, mode=mode, kwargs={"max_episode_steps": 50})
        return NormalizedRewards(NormalizedObservations(inner), gamma=0.99)

    assert_resumes_exactly(envs(), envs(), steps_before=33)


def test_loading_forgets_what_the_fresh_environments_did_before() -> None:
    saved, used = make_envs("Acrobot-v1", NUM_ENVS), make_envs("Acrobot-v1", NUM_ENVS, seed=9)
    for _ in range(20):
        used.step(np.ones(NUM_ENVS, dtype=np.int64))

    assert_resumes_exactly(saved, used, steps_before=33)


def test_a_state_can_be_loaded_twice_because_loading_does_not_touch_it() -> None:
    saved = make_envs("CartPole-v1", NUM_ENVS, seed=1)
    state = saved.state_dict()
    shown: list[bytes] = []

    for _ in range(2):
        fresh = make_envs("CartPole-v1", NUM_ENVS)
        fresh.load_state_dict(state)
        for _ in range(30):
            fresh.step(np.ones(NUM_ENVS, dtype=np.int64))
        shown.append(np.asarray(fresh.obs).tobytes())

    assert shown[0] == shown[1]


def test_the_same_seed_gives_the_same_state_down_to_the_generators_of_the_spaces() -> None:
    one, other = (repr(make_envs("CartPole-v1", NUM_ENVS, mode="native", seed=4).state_dict()) for _ in range(2))

    assert one == other
