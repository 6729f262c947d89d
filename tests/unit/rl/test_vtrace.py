"""V-trace against the published formulas, one environment and one step at a time."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hookloop.rl.advantages import estimate_advantages
from hookloop.rl.vtrace import vtrace


def make(steps: int, envs: int, seed: int):
    rng = np.random.default_rng(seed)
    rewards, values, finals, log_ratios = (rng.normal(size=(steps, envs)).astype(np.float32) for _ in range(4))
    last = rng.normal(size=envs).astype(np.float32)
    terminated = rng.random((steps, envs)) < 0.2
    truncated = (rng.random((steps, envs)) < 0.2) & ~terminated
    bootstraps = np.where(truncated, finals, 0).astype(np.float32)
    return log_ratios, rewards, values, last, terminated | truncated, bootstraps


def published_target(s, log_ratios, rewards, values, last, ends, bootstraps, gamma, max_rho, max_c):
    """Equation 1 of the paper: a sum of errors, each with the product of the ratios before it."""
    steps = len(rewards)
    target, product = float(values[s]), 1.0
    for t in range(s, steps):
        ratio = math.exp(log_ratios[t])
        following = bootstraps[t] if ends[t] else (values[t + 1] if t + 1 < steps else last)
        target += gamma ** (t - s) * product * min(max_rho, ratio) * (rewards[t] + gamma * following - values[t])
        product *= min(max_c, ratio)
        if ends[t]:
            break
    return target


sizes = (st.integers(1, 10), st.integers(1, 3), st.integers(0, 10**6), st.floats(0, 1))


@settings(max_examples=60, deadline=None)
@given(*sizes, st.floats(0.5, 2.0), st.floats(0.5, 2.0))
def test_targets_and_advantages_equal_the_published_ones(
    steps: int, envs: int, seed: int, gamma: float, max_rho: float, max_c: float
) -> None:
    log_ratios, rewards, values, last, ends, bootstraps = make(steps, envs, seed)

    found = vtrace(log_ratios, rewards, values, last, ends, bootstraps, gamma=gamma, max_rho=max_rho, max_c=max_c)

    for n in range(envs):
        column = (log_ratios[:, n], rewards[:, n], values[:, n], last[n], ends[:, n], bootstraps[:, n])
        targets = [published_target(s, *column, gamma, max_rho, max_c) for s in range(steps)]
        np.testing.assert_allclose(found.targets[:, n], targets, rtol=1e-3, atol=1e-4)
        for s in range(steps):
            following = bootstraps[s, n] if ends[s, n] else (targets[s + 1] if s + 1 < steps else last[n])
            rho = min(max_rho, math.exp(log_ratios[s, n]))
            expected = rho * (rewards[s, n] + gamma * following - values[s, n])
            np.testing.assert_allclose(found.advantages[s, n], expected, rtol=1e-3, atol=1e-4)


@settings(max_examples=60, deadline=None)
@given(*sizes, st.floats(0, 1))
def test_on_policy_it_is_the_lambda_return(steps: int, envs: int, seed: int, gamma: float, decay: float) -> None:
    _, rewards, values, last, ends, bootstraps = make(steps, envs, seed)
    advantages = np.empty_like(rewards)
    estimate_advantages(rewards, values, last, ends, bootstraps, gamma=gamma, gae_lambda=decay, out_TN=advantages)

    found = vtrace(np.zeros_like(rewards), rewards, values, last, ends, bootstraps, gamma=gamma, decay=decay)

    np.testing.assert_allclose(found.advantages, advantages, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.targets, advantages + values, rtol=1e-4, atol=1e-5)


def test_an_action_that_has_become_unlikely_counts_for_little() -> None:
    log_ratios = np.array([[-10.0], [0.0]], np.float32)
    ones, zeros = np.ones((2, 1), np.float32), np.zeros((2, 1), np.float32)

    found = vtrace(log_ratios, ones, zeros, np.zeros(1, np.float32), zeros.astype(bool), zeros, gamma=1.0)

    assert abs(found.advantages[0, 0]) < 1e-3
    assert found.advantages[1, 0] == 1.0
