"""An environment that breaks its promises is told which field, what was expected, what came, and where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from hookloop.errors import HookloopError
from hookloop.rl.envs import (
    ActionMismatchError,
    EnvMismatchError,
    Envs,
    SyncEnvs,
    UnknownEnvError,
    make_envs,
    wrap_envs,
)

from .counting import CountingEnv, CountingVectorEnv


class BrokenEnv(CountingEnv):
    """Returns one thing wrong, from the given step on."""

    def __init__(self, field: str, value: Any, *, from_step: int = 1) -> None:
        super().__init__(((99, "terminated"),))
        self._field, self._value, self._from_step = field, value, from_step

    def step(self, action: int) -> tuple[Any, Any, Any, Any, dict]:
        seen, reward, terminated, truncated, info = super().step(action)
        results = {"observation": seen, "reward": reward, "terminated": terminated, "truncated": truncated}
        if self.steps >= self._from_step:
            results[self._field] = self._value
        return results["observation"], results["reward"], results["terminated"], results["truncated"], info


def acts(envs: Envs, steps: int = 1) -> None:
    envs.reset(0)
    for _ in range(steps):
        envs.step(np.zeros(envs.num_envs, dtype=np.int64))


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("observation", np.zeros(3, np.float32), r"an observation of shape \(3,\), expected \(2,\)"),
        ("observation", np.array([1, np.nan], np.float32), r"an observation with the value nan at \[1\], expected"),
        ("observation", np.array(["a", "b"]), "an observation of dtype <U1, expected float32"),
        ("observation", [[1.0], [1.0, 2.0]], "an observation as list that makes no array"),
        ("reward", np.array([1.0]), r"the reward array\(\[1.\]\) \(ndarray\), expected one number"),
        ("reward", None, r"the reward None \(NoneType\), expected one number"),
        ("reward", float("inf"), "a reward with the value inf, expected finite numbers"),
        ("terminated", 1, r"terminated=1 \(int\), expected a bool. Return bool\(terminated\)"),
        ("truncated", None, r"truncated=None \(NoneType\), expected a bool"),
    ],
)
def test_our_loop_names_the_environment_and_the_field(field: str, value: Any, words: str) -> None:
    envs = SyncEnvs([CountingEnv(), BrokenEnv(field, value)], who="Test-v0")

    with pytest.raises(EnvMismatchError, match=r"^Test-v0 \(environment 1\) gave " + words):
        acts(envs)


class BrokenVectorEnv(CountingVectorEnv):
    """Returns one thing wrong; ``place`` is where it stands in the results of step."""

    def __init__(self, place: int, value: Any, mode: AutoresetMode = AutoresetMode.NEXT_STEP) -> None:
        super().__init__(mode=mode)
        self._place, self._value = place, value

    def step(self, actions: np.ndarray) -> Any:
        results: list[Any] = list(super().step(actions))
        results[self._place] = self._value
        return tuple(results)


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (0, np.zeros((2, 3), np.float32), r"observations of shape \(2, 3\), expected \(2, 2\).*the 2 environments"),
        (0, np.array([[0, 0], [0, np.inf]], np.float32), r"observations with the value inf at \[1\] in environment 1"),
        (0, [0.0, 0.0], "observations as list, expected an array"),
        (1, np.zeros((2, 1)), r"rewards of shape \(2, 1\), expected \(2,\)"),
        (1, np.array([np.nan, 0.0]), "rewards with the value nan in environment 0"),
        (2, np.zeros(2), "terminated of dtype float64, expected bool"),
        (3, np.zeros(2, np.int64), "truncated of dtype int64, expected bool"),
        (4, [{}, {}], "infos as list, expected a dict of arrays"),
    ],
)
def test_a_vector_environment_is_told_the_field_and_the_row(place: int, value: Any, words: str) -> None:
    with pytest.raises(EnvMismatchError, match=r"^BrokenVectorEnv gave " + words):
        acts(wrap_envs(BrokenVectorEnv(place, value)))


def test_checks_are_made_on_the_first_two_steps_and_then_no_more() -> None:
    early = SyncEnvs([BrokenEnv("reward", float("inf"), from_step=2)])
    late = SyncEnvs([BrokenEnv("reward", float("inf"), from_step=3)])

    with pytest.raises(EnvMismatchError):
        acts(early, steps=2)
    acts(late, steps=5)


def test_more_checks_can_be_asked_for() -> None:
    envs = SyncEnvs([BrokenEnv("reward", float("inf"), from_step=5)])
    envs.check_next_steps(5)

    with pytest.raises(EnvMismatchError):
        acts(envs, steps=5)


def test_the_mode_same_step_must_give_the_last_observation() -> None:
    with pytest.raises(EnvMismatchError, match=r"in environment 0 without infos\['final_obs'\].*declare another mode"):
        acts(wrap_envs(BrokenVectorEnv(4, {}, AutoresetMode.SAME_STEP)), steps=2)


def test_a_vector_environment_must_say_how_it_resets() -> None:
    vector_env = CountingVectorEnv()
    vector_env.metadata = {}

    with pytest.raises(EnvMismatchError, match=r"autoreset_mode'\]=None; set it to one of AutoresetMode.NEXT_STEP"):
        wrap_envs(vector_env)


@pytest.mark.parametrize(
    ("actions", "words"),
    [
        (np.zeros(3, np.int64), r"actions of shape \(3,\), expected a numpy array of shape \(2,\)"),
        ([0, 0], "actions of type list, expected a numpy array"),
        (np.zeros(2, np.float32), "actions of dtype float32, expected int64"),
        (np.array([0, 2]), r"the action 2 for environment 1, not in DiscreteActions\(n=2\)"),
    ],
)
def test_actions_that_do_not_fit_are_refused(actions: Any, words: str) -> None:
    envs = SyncEnvs([CountingEnv(), CountingEnv()])
    envs.reset(0)

    with pytest.raises(ActionMismatchError, match="CountingEnv was given " + words):
        envs.step(actions)


def test_a_step_before_the_reset_is_refused() -> None:
    with pytest.raises(ActionMismatchError, match=r"stepped before it was reset. Call reset\(seed\) first"):
        SyncEnvs([CountingEnv()]).step(np.zeros(1, np.int64))


def test_environments_with_other_spaces_cannot_step_together() -> None:
    other = CountingEnv()
    other.action_space = spaces.Discrete(3)

    with pytest.raises(EnvMismatchError, match=r"the action_space of environment 1 is Discrete\(3\)"):
        SyncEnvs([CountingEnv(), other])


@pytest.mark.parametrize(
    ("id", "words"),
    [
        ("CartPol-v1", "There is no environment 'CartPol-v1' in Gymnasium's registry. Did you mean 'CartPole-v1'?"),
        ("CartPole", "Did you mean 'CartPole-v1'?"),
        ("zzz/Qqqqq-v0", "registry. Import the package that registers it"),
    ],
)
def test_an_unknown_id_gets_a_near_miss_or_the_way_to_the_list(id: str, words: str) -> None:
    with pytest.raises(UnknownEnvError) as caught:
        make_envs(id, 1)

    assert words in str(caught.value)
    assert isinstance(caught.value, LookupError | HookloopError)
