"""Codes as ones and zeros."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from hookloop.errors import UnknownNameError
from hookloop.rl.envs import EnvMismatchError, OneHotObservations, SyncEnvs


class Codes(gymnasium.Env):
    """Shows a small grid of codes that follows from the step, and a heading."""

    observation_space = spaces.Dict(
        {"grid": spaces.Box(0, 255, (2, 2, 2), np.uint8), "heading": spaces.Discrete(3), "size": spaces.Box(0, 1, (1,))}
    )
    action_space = spaces.Discrete(2)

    def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
        self.step_number = 0
        return self._see(), {}

    def step(self, _action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.step_number += 1
        return self._see(), 1.0, self.step_number == 4, False, {}

    def _see(self) -> dict[str, Any]:
        grid = (np.arange(8).reshape(2, 2, 2) + self.step_number) % np.array([4, 2])
        return {"grid": grid.astype(np.uint8), "heading": self.step_number % 3, "size": np.zeros(1, np.float32)}


def one_hot(**num_values: tuple[int, ...]) -> OneHotObservations:
    envs = OneHotObservations(SyncEnvs([Codes(), Codes()]), num_values or {"grid": (4, 2), "heading": (3,)})
    envs.reset(0)
    return envs


def expected(grid: np.ndarray, heading: int) -> list[float]:
    parts = [np.eye(n)[code] for code, n in zip(grid.ravel(), (4, 2) * 4, strict=True)]
    return np.concatenate([*parts, np.eye(3)[heading]]).tolist()


def test_every_code_is_a_one_among_zeros() -> None:
    envs = one_hot()
    seen = Codes()
    seen.reset()

    for _ in range(3):
        envs.step(np.zeros(2, dtype=np.int64))
        raw, *_ = seen.step(0)

        assert envs.obs[0].tolist() == expected(raw["grid"], raw["heading"])
        assert envs.obs[1].tolist() == envs.obs[0].tolist()


def test_the_last_observation_of_an_episode_is_written_too() -> None:
    envs = one_hot()
    for _ in range(4):
        envs.step(np.zeros(2, dtype=np.int64))
    last = Codes()
    last.reset()
    for _ in range(4):
        raw, *_ = last.step(0)

    assert envs.finished
    assert envs.final_obs[0].tolist() == expected(raw["grid"], raw["heading"])


def test_the_spec_is_one_vector_of_what_was_asked_for() -> None:
    assert one_hot().observation.array.shape == (4 * (4 + 2) + 3,)
    assert one_hot(heading=(3,)).observation.array.shape == (3,)


def test_a_code_beyond_the_largest_is_written_as_the_largest() -> None:
    envs = one_hot(grid=(2, 1))

    assert envs.obs.shape == (2, 4 * 3)
    assert envs.obs.sum() == 2 * 8


def test_it_goes_on_from_a_saved_state() -> None:
    whole, resumed = one_hot(), one_hot()
    for _ in range(3):
        whole.step(np.zeros(2, dtype=np.int64))

    resumed.load_state_dict(whole.state_dict())

    assert np.array_equal(resumed.obs, whole.obs)


@pytest.mark.parametrize(
    ("num_values", "error", "words"),
    [
        ({"grud": (4, 2)}, UnknownNameError, "no part 'grud' of the observation. Did you mean 'grid'"),
        ({"grid": (4, 2, 1)}, EnvMismatchError, "has 2 channels, got the numbers of values"),
        ({"grid": (0, 2)}, EnvMismatchError, "at least 1"),
        ({"size": (4,)}, EnvMismatchError, "is float32; only whole numbers"),
    ],
)
def test_what_cannot_be_written_is_refused(num_values: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        one_hot(**num_values)


def test_nothing_to_observe_is_refused() -> None:
    with pytest.raises(EnvMismatchError, match="name at least one part"):
        OneHotObservations(SyncEnvs([Codes()]), {})
