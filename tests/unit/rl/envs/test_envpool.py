"""EnvPool behind the same face."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import numpy as np
import pytest

from hookloop.errors import MissingExtraError
from hookloop.rl.envs import Envs, UnknownEnvError, check_envs, make_envs
from hookloop.rl.specs import ArraySpec, DiscreteActions

needs_envpool = pytest.mark.skipif(find_spec("envpool") is None, reason="needs the extra envpool")


def trace(envs: Envs, seed: int, steps: int = 40) -> list[bytes]:
    envs.reset(seed)
    shown = [np.asarray(envs.obs).tobytes()]
    for step in range(steps):
        envs.step(np.full(envs.num_envs, step % 2, dtype=np.int64))
        shown.append(np.asarray(envs.obs).tobytes())
    return shown


@needs_envpool
def test_the_same_seed_gives_the_same_episodes() -> None:
    envs = make_envs("CartPole-v1", 4, mode="envpool")

    assert trace(envs, 3) == trace(envs, 3)
    assert trace(envs, 3) != trace(envs, 4)
    envs.close()
    envs.close()


@needs_envpool
def test_fillers_are_marked_and_last_observations_kept() -> None:
    envs = make_envs("CartPole-v1", 4, mode="envpool", seed=1)
    assert envs.has_fillers
    was_ended = np.zeros(4, dtype=bool)
    num_finished = 0

    for _ in range(60):
        envs.step(np.ones(4, dtype=np.int64))
        ended = envs.terminated | envs.truncated
        assert np.array_equal(envs.valid, ~was_ended)
        assert np.array_equal(np.asarray(envs.final_obs)[ended], np.asarray(envs.obs)[ended])
        assert all(episode.return_ == episode.length for episode in envs.finished)
        num_finished += len(envs.finished)
        was_ended = ended.copy()

    assert num_finished > 8
    envs.close()


@needs_envpool
def test_specs_are_known_before_the_first_reset() -> None:
    envs = make_envs("CartPole-v1", 2, mode="envpool")

    assert envs.action == DiscreteActions(2)
    assert envs.observation.array == ArraySpec((4,), "float32")


@needs_envpool
def test_a_resume_begins_new_episodes_and_says_why() -> None:
    envs = make_envs("CartPole-v1", 2, mode="envpool", seed=1)
    envs.step(np.zeros(2, dtype=np.int64))

    fresh = make_envs("CartPole-v1", 2, mode="envpool")
    fresh.load_state_dict(envs.state_dict())

    assert envs.exactness == "learner-exact"
    assert "EnvPool keeps its environments in C++" in envs.inexact_because
    assert fresh.episode_lengths.tolist() == [0, 0]
    assert [problem.kind for problem in check_envs(envs, steps=60)] == ["warning"]
    envs.close()
    fresh.close()


@needs_envpool
def test_an_unknown_id_gets_a_near_miss() -> None:
    with pytest.raises(UnknownEnvError, match=r"'CartPol-v1' in EnvPool. Did you mean 'CartPole-v1'\?"):
        make_envs("CartPol-v1", 1, mode="envpool")


def test_without_envpool_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "envpool", None)

    with pytest.raises(MissingExtraError, match=r"pip install 'hookloop\[envpool\]'"):
        make_envs("CartPole-v1", 1, mode="envpool")
