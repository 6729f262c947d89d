"""Every supported space crosses over: what is observed, what is handed to the environment, and what is refused."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv

from hookloop.rl.envs import Envs, SyncEnvs, UnsupportedSpaceError, wrap_envs
from hookloop.rl.specs import ArraySpec, ContinuousActions, DiscreteActions, MultiDiscreteActions


class EchoEnv(gymnasium.Env):
    """Shows samples of a space and remembers what it was handed, without a copy, as environments may."""

    def __init__(self, observation_space: spaces.Space, action_space: spaces.Space) -> None:
        self.observation_space, self.action_space = observation_space, action_space
        self.handed: list[Any] = []
        self.shown: list[Any] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        return self._show(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        self.handed.append(action)
        return self._show(), 0.0, False, False, {}

    def _show(self) -> Any:
        self.shown.append(self.observation_space.sample())
        return self.shown[-1]


BOX = spaces.Box(-1.0, 1.0, (2,), np.float32)
TWO = spaces.Discrete(2)


def both_adapters(observation_space: spaces.Space, action_space: spaces.Space) -> list[tuple[Envs, list[EchoEnv]]]:
    ours = [EchoEnv(observation_space, action_space) for _ in range(3)]
    theirs = [EchoEnv(observation_space, action_space) for _ in range(3)]
    vector_env = SyncVectorEnv([lambda env=env: env for env in theirs])
    return [(SyncEnvs(ours), ours), (wrap_envs(vector_env), theirs)]


def test_discrete_actions_begin_at_zero_wherever_the_environment_begins() -> None:
    for envs, inner in both_adapters(BOX, spaces.Discrete(3, start=5)):
        envs.reset(0)

        envs.step(np.array([0, 1, 2]))

        assert envs.action == DiscreteActions(3)
        assert [int(env.handed[-1]) for env in inner] == [5, 6, 7]


def test_multi_discrete_and_binary_actions_are_rows_of_choices() -> None:
    for space, nvec in ((spaces.MultiDiscrete([3, 2]), (3, 2)), (spaces.MultiBinary(2), (2, 2))):
        for envs, inner in both_adapters(BOX, space):
            envs.reset(0)

            envs.step(np.array([[1, 0], [0, 1], [1, 1]]))

            assert envs.action == MultiDiscreteActions(nvec)
            assert [env.handed[-1].tolist() for env in inner] == [[1, 0], [0, 1], [1, 1]]
            assert inner[0].handed[-1].dtype == space.dtype


def test_continuous_actions_are_clipped_for_the_environment_and_left_alone_for_the_caller() -> None:
    space = spaces.Box(np.array([-1.0, -2.0]), np.array([1.0, np.inf]), dtype=np.float64)
    for envs, inner in both_adapters(BOX, space):
        envs.reset(0)
        actions = np.array([[-3.0, -3.0], [0.5, 7.0], [3.0, 0.25]], dtype=np.float32)
        raw = actions.copy()

        envs.step(actions)

        assert envs.action == ContinuousActions((2,), (-1.0, -2.0), (1.0, np.inf))
        assert [env.handed[-1].tolist() for env in inner] == [[-1.0, -2.0], [0.5, 7.0], [1.0, 0.25]]
        assert inner[0].handed[-1].dtype == np.float64
        assert (actions == raw).all()


def test_an_environment_may_keep_the_action_it_was_handed() -> None:
    for envs, inner in both_adapters(BOX, spaces.Box(-1.0, 1.0, (1,), np.float32)):
        envs.reset(0)
        actions = np.zeros((3, 1), dtype=np.float32)

        for value in (0.25, 0.5):
            actions[:] = value
            envs.step(actions)

        assert [float(action[0]) for action in inner[0].handed] == [0.25, 0.5]


def test_nested_observations_are_flat_with_joined_keys() -> None:
    space = spaces.Dict(
        {
            "arm": spaces.Dict({"joints": BOX, "grip": spaces.Discrete(4)}),
            "camera": spaces.Box(0, 255, (2, 2), np.uint8),
            "pair": spaces.Tuple([spaces.MultiBinary(3), spaces.MultiDiscrete([2, 5])]),
        }
    )
    for envs, inner in both_adapters(space, TWO):
        envs.reset(0)
        envs.step(np.zeros(3, dtype=np.int64))

        assert envs.observation.arrays == {
            "arm/grip": ArraySpec((), "int64"),
            "arm/joints": ArraySpec((2,), "float32"),
            "camera": ArraySpec((2, 2), "uint8"),
            "pair/0": ArraySpec((3,), "int8"),
            "pair/1": ArraySpec((2,), "int64"),
        }
        assert envs.observation.arrays["arm/grip"].num_values == 4
        assert isinstance(envs.obs, dict)
        for index, env in enumerate(inner):
            shown = env.shown[-1]
            assert (envs.obs["arm/joints"][index] == shown["arm"]["joints"]).all()
            assert (envs.obs["camera"][index] == shown["camera"]).all()
            assert (envs.obs["pair/1"][index] == shown["pair"][1]).all()


def test_a_scalar_observation_has_no_axis_but_that_of_the_environments() -> None:
    for envs, _ in both_adapters(spaces.Discrete(16), TWO):
        assert np.shape(envs.obs) == (3,)
        assert envs.observation.array.num_values == 16


@pytest.mark.parametrize(
    ("observation_space", "action_space", "words"),
    [
        (spaces.Text(5), TWO, "The observation has the space Text.*which no array of fixed shape can hold"),
        (spaces.Dict({"a": spaces.Sequence(TWO)}), TWO, r"The observation\['a'\] has the space Sequence"),
        (BOX, spaces.Dict({"move": TWO}), "The action space Dict.*is not supported"),
        (BOX, spaces.Box(0, 9, (1,), np.int64), "The action space Box.*a Box of floats"),
        (BOX, spaces.MultiDiscrete([[2, 2]]), "MultiDiscrete or MultiBinary of one axis"),
        (spaces.Dict({"a/b": TWO, "a": spaces.Dict({"b": TWO})}), TWO, "both called 'a/b'"),
    ],
    ids=["text", "sequence", "dict-action", "int-box-action", "matrix-action", "key-clash"],
)
def test_a_space_that_no_array_can_stand_for_is_refused(
    observation_space: spaces.Space, action_space: spaces.Space, words: str
) -> None:
    with pytest.raises(UnsupportedSpaceError, match=words):
        SyncEnvs([EchoEnv(observation_space, action_space)])
