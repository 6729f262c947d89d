"""GAE against plain arithmetic, one environment and one step at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookloop.rl.advantages import estimate_advantages


def reference(rewards, values, last_value, terminated, truncated, final_values, gamma, gae_lambda):
    """The definition, for one environment: what is cut off has a future, what is over has none."""
    steps = len(rewards)
    advantages = [0.0] * steps
    running = 0.0
    for t in reversed(range(steps)):
        if terminated[t]:
            next_value, carried = 0.0, 0.0
        elif truncated[t]:
            next_value, carried = final_values[t], 0.0
        else:
            next_value, carried = (values[t + 1] if t + 1 < steps else last_value), running
        running = rewards[t] + gamma * next_value - values[t] + gamma * gae_lambda * carried
        advantages[t] = running
    return advantages


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(1, 4), st.integers(0, 10**6), st.floats(0, 1), st.floats(0, 1))
def test_advantages_equal_the_definition(steps: int, envs: int, seed: int, gamma: float, gae_lambda: float) -> None:
    rng = np.random.default_rng(seed)
    rewards, values, finals = (rng.normal(size=(steps, envs)).astype(np.float32) for _ in range(3))
    last = rng.normal(size=envs).astype(np.float32)
    terminated = rng.random((steps, envs)) < 0.2
    truncated = (rng.random((steps, envs)) < 0.2) & ~terminated
    out = np.empty_like(rewards)

    estimate_advantages(
        rewards, values, last, terminated | truncated, np.where(truncated, finals, 0).astype(np.float32),
        gamma=gamma, gae_lambda=gae_lambda, out_TN=out,
    )  # fmt: skip

    for n in range(envs):
        expected = reference(
            rewards[:, n], values[:, n], last[n], terminated[:, n], truncated[:, n], finals[:, n], gamma, gae_lambda
        )
        np.testing.assert_allclose(out[:, n], expected, rtol=1e-4, atol=1e-5)


def test_a_truncated_episode_is_worth_more_than_a_terminated_one() -> None:
    rewards = np.ones((1, 2), dtype=np.float32)
    values = np.zeros((1, 2), dtype=np.float32)
    ends = np.ones((1, 2), dtype=bool)
    bootstraps = np.array([[0.0, 10.0]], dtype=np.float32)
    out = np.empty_like(rewards)

    estimate_advantages(
        rewards, values, np.zeros(2, np.float32), ends, bootstraps, gamma=0.9, gae_lambda=0.95, out_TN=out
    )

    assert out[0].tolist() == pytest.approx([1.0, 10.0])
