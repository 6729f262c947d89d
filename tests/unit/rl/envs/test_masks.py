"""Action masks come from the info or from the observation, and are those of the observation acted on next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from hookloop.rl.envs import EnvMismatchError, Envs, SyncEnvs, make_envs, wrap_envs
from hookloop.rl.envs.random_actions import random_actions


class TurnEnv(gymnasium.Env):
    """Allows action ``step % 3`` and the last one; episodes have two steps."""

    def __init__(self, *, is_observed: bool = False, kind: str = "array") -> None:
        box = spaces.Box(0.0, 10.0, (1,), np.float32)
        mask_space = spaces.MultiBinary(4)
        self.observation_space = spaces.Dict({"seen": box, "action_mask": mask_space}) if is_observed else box
        self.action_space = spaces.MultiDiscrete([3, 1]) if kind == "tuple" else spaces.Discrete(4)
        self._is_observed, self._kind, self._steps = is_observed, kind, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self._steps = 0
        return self._results()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        self._steps += 1
        observation, info = self._results()
        return observation, 1.0, self._steps == 2, False, info

    def _results(self) -> tuple[Any, dict[str, Any]]:
        mask = np.zeros(4, dtype=np.int8)
        mask[[self._steps % 3, 3]] = 1
        seen = np.array([self._steps], dtype=np.float32)
        if self._is_observed:
            return {"seen": seen, "action_mask": mask}, {}
        forms = {"array": mask, "list": mask.tolist(), "tuple": (mask[:3], mask[3:]), "none": None}
        return seen, {} if self._kind == "none" else {"action_mask": forms[self._kind]}


def allowed(step: int) -> list[bool]:
    return [index in (step % 3, 3) for index in range(4)]


def by_gymnasium(mode: AutoresetMode) -> Callable[..., Envs]:
    return lambda **options: wrap_envs(SyncVectorEnv([lambda: TurnEnv(**options)] * 2, autoreset_mode=mode))


MAKERS = [by_gymnasium(mode) for mode in AutoresetMode] + [lambda **options: SyncEnvs([TurnEnv(**options)] * 1)]
IDS = [mode.name for mode in AutoresetMode] + ["our-loop"]


@pytest.mark.parametrize("make", MAKERS, ids=IDS)
@pytest.mark.parametrize("options", [{}, {"kind": "list"}, {"kind": "tuple"}, {"is_observed": True}])
def test_the_mask_belongs_to_what_is_acted_on_next(make: Callable[..., Envs], options: dict[str, Any]) -> None:
    envs = make(**options)
    envs.reset(0)
    masks = envs.action_masks
    assert masks is not None

    for _ in range(7):
        seen = envs.obs["seen"] if isinstance(envs.obs, dict) else envs.obs
        assert masks.tolist() == [allowed(int(step)) for step in seen[:, 0]]
        envs.step(random_actions(envs.action, envs.num_envs, np.random.default_rng(0), masks))
        assert envs.action_masks is masks


def test_an_observed_mask_is_no_part_of_the_observation() -> None:
    envs = SyncEnvs([TurnEnv(is_observed=True)])

    assert list(envs.observation.arrays) == ["seen"]


def test_masks_are_known_before_the_first_reset() -> None:
    assert SyncEnvs([TurnEnv()]).action_masks is not None
    assert SyncEnvs([TurnEnv(kind="none")]).action_masks is None


def test_taxi_gives_masks() -> None:
    envs = make_envs("Taxi-v4", 3, seed=0)

    assert envs.action_masks is not None
    assert envs.action_masks.shape == (3, 6)
    assert not envs.action_masks.all()


def test_random_actions_keep_to_the_masks() -> None:
    envs = make_envs("Taxi-v4", 3, seed=0)
    generator = np.random.default_rng(0)

    for _ in range(50):
        masks = envs.action_masks
        assert masks is not None
        actions = random_actions(envs.action, 3, generator, masks)
        assert masks[np.arange(3), actions].all()
        envs.step(actions)


class LateEnv(TurnEnv):
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        return super().reset(seed=seed)[0], {}


def late_by_gymnasium() -> Envs:
    return wrap_envs(SyncVectorEnv([LateEnv]))


def late_by_our_loop() -> Envs:
    return SyncEnvs([LateEnv()])


@pytest.mark.parametrize("make", [late_by_gymnasium, late_by_our_loop])
def test_a_mask_that_only_steps_give_is_refused(make: Callable[[], Envs]) -> None:
    envs = make()
    envs.reset(0)

    with pytest.raises(EnvMismatchError, match=r"gave an action mask in step\(\) but none in reset\(\)"):
        envs.step(np.array([0]))


class BlockedEnv(TurnEnv):
    def _results(self) -> tuple[Any, dict[str, Any]]:
        return np.zeros(1, dtype=np.float32), {"action_mask": np.zeros(4, dtype=np.int8)}


class NarrowEnv(TurnEnv):
    def _results(self) -> tuple[Any, dict[str, Any]]:
        return np.zeros(1, dtype=np.float32), {"action_mask": np.ones(3, dtype=np.int8)}


def test_a_mask_that_allows_nothing_is_refused() -> None:
    with pytest.raises(EnvMismatchError, match=r"BlockedEnv \(environment 0\) .*allows no action at all"):
        SyncEnvs([BlockedEnv()]).reset(0)


def test_a_mask_of_the_wrong_width_is_refused() -> None:
    with pytest.raises(EnvMismatchError, match=r"action mask of shape \(3,\), expected \(4,\)"):
        SyncEnvs([NarrowEnv()]).reset(0)
