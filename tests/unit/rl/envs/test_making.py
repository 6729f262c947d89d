"""Environments are made the quickest way that gives what was asked for."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import RescaleAction

import hookloop.rl.envs
from hookloop.rl.envs import EnvMismatchError, Envs, SyncEnvs, VectorEnvs, make_envs, wrap_envs
from hookloop.rl.envs.random_actions import random_actions
from hookloop.rl.specs import ContinuousActions


def test_auto_is_native_where_the_environment_has_a_vector_version() -> None:
    assert isinstance(make_envs("CartPole-v1", 2), VectorEnvs)
    assert isinstance(make_envs("Acrobot-v1", 2), SyncEnvs)


def test_wrappers_go_around_single_environments() -> None:
    def rescale(env: gymnasium.Env) -> gymnasium.Env:
        return RescaleAction(env, np.float32(-1.0), np.float32(1.0))

    envs = make_envs("Pendulum-v1", 2, wrappers=[rescale])

    assert envs.action == ContinuousActions((1,), (-1.0,), (1.0,))


def test_a_wrapper_turns_auto_to_sync() -> None:
    envs = make_envs("CartPole-v1", 2, wrappers=[lambda env: env])

    assert isinstance(envs, SyncEnvs)


@pytest.mark.parametrize("mode", ["native", "sync"])
def test_kwargs_reach_the_environments(mode: Any) -> None:
    envs = make_envs("CartPole-v1", 2, mode=mode, kwargs={"max_episode_steps": 3}, seed=0)

    for _ in range(3):
        envs.step(np.zeros(2, dtype=np.int64))

    assert envs.truncated.all()


def test_a_seed_resets_at_once() -> None:
    at_once, later = make_envs("Acrobot-v1", 2, seed=5), make_envs("Acrobot-v1", 2)

    later.reset(5)

    assert np.array_equal(np.asarray(at_once.obs), np.asarray(later.obs))


def test_our_loop_gives_what_gymnasium_gives() -> None:
    ours = make_envs("CartPole-v1", 3, mode="sync", seed=1)
    theirs = wrap_envs(
        SyncVectorEnv([lambda: gymnasium.make("CartPole-v1")] * 3, autoreset_mode=AutoresetMode.SAME_STEP)
    )
    theirs.reset(1)
    generator = np.random.default_rng(0)

    for _ in range(200):
        actions = random_actions(ours.action, 3, generator)
        ours.step(actions)
        theirs.step(actions)
        assert np.array_equal(np.asarray(ours.obs), np.asarray(theirs.obs))
        assert np.array_equal(np.asarray(ours.final_obs), np.asarray(theirs.final_obs))
        assert np.array_equal(ours.rewards, theirs.rewards)
        assert ours.finished == theirs.finished


def test_processes_give_what_the_loop_gives() -> None:
    ours = make_envs("CartPole-v1", 2, mode="sync", seed=1)
    processes = make_envs("CartPole-v1", 2, mode="async", seed=1)
    generator = np.random.default_rng(0)
    try:
        for _ in range(60):
            actions = random_actions(ours.action, 2, generator)
            ours.step(actions)
            processes.step(actions)
            assert np.array_equal(np.asarray(ours.obs), np.asarray(processes.obs))
            assert np.array_equal(np.asarray(ours.final_obs), np.asarray(processes.final_obs))
            assert ours.finished == processes.finished
    finally:
        processes.close()


def test_a_script_that_is_not_safe_to_import_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("from hookloop.rl.envs import make_envs\nmake_envs('CartPole-v1', 1, mode='async')\n")

    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=60)

    assert ended.returncode == 1
    assert "EnvProcessError: The processes for 1 x CartPole-v1 ended before they were ready" in ended.stderr
    assert "put what the script does under if __name__ == '__main__':" in ended.stderr


@pytest.mark.parametrize(
    ("id", "options", "words"),
    [
        ("Acrobot-v1", {"mode": "native"}, "Acrobot-v1 cannot be made with mode='native'"),
        ("CartPole-v1", {"mode": "native", "wrappers": [lambda env: env]}, "wrappers are asked for"),
        ("CartPole-v1", {"mode": "fast"}, "mode must be one of auto, native, sync, async, envpool, got 'fast'"),
        ("CartPole-v1", {"num_envs": 0}, "num_envs must be at least 1, got 0"),
        ("CartPole-v1", {"mode": "envpool", "wrappers": [lambda env: env]}, "EnvPool takes no wrappers"),
    ],
)
def test_what_cannot_be_made_is_refused(id: str, options: dict, words: str) -> None:
    with pytest.raises(EnvMismatchError, match=words):
        make_envs(id, **({"num_envs": 1} | options))


def test_gymnasium_is_known_to_one_package_only() -> None:
    home = Path(hookloop.rl.envs.__file__).parent
    knowing = {path for path in home.rglob("*.py") if re.search(r"^\s*(import|from) gymnasium", path.read_text(), re.M)}

    assert knowing
    assert {path.parent for path in knowing} == {home / "gymnasium_envs"}


def test_environments_can_be_closed_twice() -> None:
    made: list[Envs] = [make_envs("CartPole-v1", 1, mode="native"), make_envs("CartPole-v1", 1, mode="sync")]

    for envs in made:
        envs.close()
        envs.close()
