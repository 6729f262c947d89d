"""Any environment that keeps itself in plain attributes is saved as it is; any other says what stands in the way."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from enum import Enum
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import FrameStackObservation, NormalizeReward, RescaleObservation, TimeLimit
from gymnasium.wrappers.vector import NormalizeObservation

from hookloop.rl.envs import Envs, EnvStateError, Restorable, SyncEnvs, wrap_envs

from .counting import CountingEnv, CountingVectorEnv
from .saving import through_a_file


class DriftEnv(gymnasium.Env):
    """A number that drifts at random; subclasses keep more, or keep it elsewhere."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-1e3, 1e3, (1,), np.float32)
        self.action_space = spaces.Discrete(2)
        self.value = 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.value = float(self.np_random.normal())
        return self.see(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict]:
        self.drift(int(action))
        return self.see(), self.value, bool(self.np_random.random() < 0.05), False, {}

    def drift(self, action: int) -> None:
        self.value += action + self.np_random.normal()

    def see(self) -> np.ndarray:
        return np.array([self.value], dtype=np.float32)


class BoxedDriftEnv(DriftEnv):
    """Drifts no further than 100."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Box(-100.0, 100.0, (1,), np.float32)


class Phase(Enum):
    RISING = "rising"
    FALLING = "falling"


class ContainersEnv(DriftEnv):
    """Keeps its past in containers of several kinds, one of them under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.past: deque[float] = deque([0.0] * 3, maxlen=3)
        self.alias = self.past
        self.visits: dict[tuple[int, int], int] = {}
        self.phase = Phase.RISING
        self.rules = [abs, "rule", Phase.RISING, lambda value: value * self.pace]
        self.by_action = {0: self.see, 1: partial(max, 0)}
        self.pace = 1.0
        self.buffer = np.zeros(2)
        self.same_buffer = self.buffer

    def drift(self, action: int) -> None:
        super().drift(action)
        self.alias.append(self.value)
        cell = (int(self.value) % 3, action)
        self.visits[cell] = self.visits.get(cell, 0) + 1
        self.phase = Phase.FALLING if self.past[0] > self.past[-1] else Phase.RISING
        self.buffer += self.value
        self.value = sum(self.past) / 3 + self.visits[cell] * 0.1 + (self.phase is Phase.RISING) + self.same_buffer[0]
        self.value %= 7.0


class Motor:
    """A part: a plain object with numbers of its own."""

    def __init__(self, env: DriftEnv) -> None:
        self.env, self.heat = env, 0.0
        self.noise = np.random.default_rng(5)

    def turn(self) -> float:
        self.heat = 0.9 * self.heat + self.noise.normal()
        return self.heat


class PartsEnv(DriftEnv):
    """Is made of parts, which know where they belong."""

    def __init__(self) -> None:
        super().__init__()
        self.motors = [Motor(self), Motor(self)]
        self.spare = {"a": Motor(self)}
        self.active = self.motors[0]

    def drift(self, action: int) -> None:
        super().drift(action)
        self.value += self.motors[action].turn() + self.spare["a"].turn()


class NewPartsEnv(PartsEnv):
    """Takes new parts for every episode."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        self.motors = [Motor(self), Motor(self)]
        self.active = self.motors[0]
        return super().reset(seed=seed)


class TableEnv(DriftEnv):
    """Looks things up in a large table that is drawn when it is made."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        generator = np.random.default_rng(seed)
        self.table = {row: [(float(generator.normal()), row)] for row in range(400)}

    def drift(self, action: int) -> None:
        self.value = self.table[int(self.np_random.integers(400))][0][0]


class OpaqueEnv(DriftEnv):
    """Keeps its number where nobody can see it; with the two methods, it can be saved all the same."""

    def __init__(self) -> None:
        super().__init__()
        self.engine = _engine()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        self.engine = _engine()
        next(self.engine)
        return super().reset(seed=seed)

    def drift(self, action: int) -> None:
        self.value += self.engine.send(action)


def _engine() -> Any:
    total = 0
    while True:
        total += yield total


class SavingEnv(OpaqueEnv):
    """Saves itself."""

    def get_state(self) -> dict[str, Any]:
        return {"value": self.value, "total": self.engine.send(0)}

    def set_state(self, state: dict[str, Any]) -> None:
        self.value, self.engine = state["value"], _engine()
        next(self.engine)
        self.engine.send(state["total"])


def assert_goes_on_the_same(saved: Envs, fresh: Envs, *, steps: int = 60) -> None:
    """Step one, save it, load it into the other, and demand the same of both ever after."""
    generator = np.random.default_rng(0)
    saved.reset(11)
    for _ in range(17):
        saved.step(generator.integers(2, size=saved.num_envs))

    assert saved.inexact_because == ""
    fresh.load_state_dict(through_a_file(saved.state_dict()))

    for _ in range(steps):
        actions = generator.integers(2, size=saved.num_envs)
        saved.step(actions)
        fresh.step(actions)
        assert np.asarray(fresh.obs).tobytes() == np.asarray(saved.obs).tobytes()
        assert fresh.rewards.tobytes() == saved.rewards.tobytes()
        assert fresh.finished == saved.finished


@pytest.mark.parametrize("make", [DriftEnv, ContainersEnv, PartsEnv, NewPartsEnv, TableEnv, SavingEnv])
def test_an_environment_goes_on_with_the_same_bits(make: type[DriftEnv]) -> None:
    assert_goes_on_the_same(SyncEnvs([make(), make()]), SyncEnvs([make(), make()]))


@pytest.mark.parametrize("make", [DriftEnv, ContainersEnv, PartsEnv])
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_vector_environment_of_gymnasium_goes_on_too(make: type[DriftEnv], mode: AutoresetMode) -> None:
    def envs() -> Envs:
        return wrap_envs(SyncVectorEnv([make, make], autoreset_mode=mode))

    assert_goes_on_the_same(envs(), envs())


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_vector_environment_made_by_hand_goes_on_too(mode: AutoresetMode) -> None:
    assert_goes_on_the_same(wrap_envs(CountingVectorEnv(mode=mode)), wrap_envs(CountingVectorEnv(mode=mode)))


def test_wrappers_are_saved_with_what_they_keep() -> None:
    def one() -> gymnasium.Env:
        return NormalizeReward(TimeLimit(FrameStackObservation(DriftEnv(), 3), 9))

    assert_goes_on_the_same(SyncEnvs([one(), one()]), SyncEnvs([one(), one()]))


def test_wrappers_that_close_over_arrays_are_saved() -> None:
    def envs() -> Envs:
        low, high = np.array([-1.0], np.float32), np.array([1.0], np.float32)
        return SyncEnvs([RescaleObservation(BoxedDriftEnv(), low, high) for _ in range(2)])

    assert_goes_on_the_same(envs(), envs())


def test_vector_wrappers_are_saved_with_what_they_keep() -> None:
    def envs() -> Envs:
        return wrap_envs(NormalizeObservation(SyncVectorEnv([DriftEnv, DriftEnv])))

    assert_goes_on_the_same(envs(), envs())


def test_a_table_that_was_drawn_is_loaded_as_it_was_saved() -> None:
    saved, fresh = SyncEnvs([TableEnv(1), TableEnv(1)]), SyncEnvs([TableEnv(2), TableEnv(1)])

    assert_goes_on_the_same(saved, fresh)


def test_a_table_is_saved_once_for_all_environments() -> None:
    envs = SyncEnvs([TableEnv() for _ in range(5)])
    envs.reset(0)

    assert len(envs.state_dict()["envs"]["tables"]) == 1


def test_a_table_that_changed_is_saved_as_it_is() -> None:
    saved, fresh = SyncEnvs([TableEnv()]), SyncEnvs([TableEnv()])
    env = saved.envs[0].unwrapped
    assert isinstance(env, TableEnv)
    for row in range(400):
        env.table[row].insert(0, (float(row), row))

    assert_goes_on_the_same(saved, fresh)


def test_processes_are_asked_for_their_state() -> None:
    def envs() -> Envs:
        mode = AutoresetMode.SAME_STEP
        return wrap_envs(
            AsyncVectorEnv([lambda: Restorable(PartsEnv())] * 2, context="forkserver", autoreset_mode=mode)
        )

    saved, fresh = envs(), envs()
    try:
        assert_goes_on_the_same(saved, fresh, steps=20)
    finally:
        saved.close()
        fresh.close()


def test_processes_that_cannot_be_asked_are_the_reason() -> None:
    envs = wrap_envs(AsyncVectorEnv([DriftEnv], context="forkserver", autoreset_mode=AutoresetMode.SAME_STEP))
    try:
        assert envs.exactness == "learner-exact"
        assert "not wrapped in Restorable" in envs.inexact_because
    finally:
        envs.close()


class LateFunctionEnv(DriftEnv):
    def drift(self, action: int) -> None:
        self.rule = lambda value: value


class CountsEnv(DriftEnv):
    def __init__(self) -> None:
        super().__init__()
        self.counts: defaultdict[int, int] = defaultdict(int)

    def drift(self, action: int) -> None:
        self.counts[action] += 1


class WindowEnv(DriftEnv):
    def __init__(self) -> None:
        super().__init__()
        self.arena = np.zeros(4)
        self.corner = self.arena[:2]


class ClosureEnv(DriftEnv):
    def __init__(self) -> None:
        super().__init__()
        total = 0

        def count() -> int:
            nonlocal total
            total += 1
            return total

        self.count = count

    def drift(self, action: int) -> None:
        self.value += self.count()


class BorrowedMethodEnv(DriftEnv):
    def __init__(self) -> None:
        super().__init__()
        self.draw = np.random.default_rng(0).random

    def drift(self, action: int) -> None:
        self.value += self.draw()


class HiddenOwnerEnv(DriftEnv):
    def __init__(self) -> None:
        super().__init__()
        self.turn = Motor(self).turn


class SlotsEnv(DriftEnv):
    __slots__ = ("hidden",)

    def drift(self, action: int) -> None:
        self.hidden = action


class SwappedPartsEnv(PartsEnv):
    def drift(self, action: int) -> None:
        self.active = self.motors[1]


class ReversedPartsEnv(PartsEnv):
    def drift(self, action: int) -> None:
        self.motors = self.motors[::-1]


class FewerPartsEnv(PartsEnv):
    def drift(self, action: int) -> None:
        self.motors = self.motors[:1]


class MorePartsEnv(PartsEnv):
    def drift(self, action: int) -> None:
        self.motors = [*self.motors, Motor(self)]


class WordyEnv(SavingEnv):
    def get_state(self) -> dict[str, Any]:
        return {"engine": self.engine}


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (OpaqueEnv, r"OpaqueEnv.engine holds a generator; give the environment get_state\(\) and set_state\(\)"),
        (LateFunctionEnv, "LateFunctionEnv.rule holds a function"),
        (CountsEnv, "CountsEnv.counts holds a defaultdict"),
        (WindowEnv, "WindowEnv.corner holds an array that shares memory with another one"),
        (ClosureEnv, "ClosureEnv.count holds a function"),
        (BorrowedMethodEnv, "BorrowedMethodEnv.draw holds a .*method"),
        (HiddenOwnerEnv, "HiddenOwnerEnv.turn holds a method"),
        (SlotsEnv, "SlotsEnv keeps a part of itself in C or in slots"),
        (SwappedPartsEnv, "active points at another object than when the environment was made"),
        (ReversedPartsEnv, "motors.0 has changed places with another object"),
        (FewerPartsEnv, "motors.1 was there when the environment was made and is no more"),
        (MorePartsEnv, "motors.2 is a Motor that was not there when the environment was made"),
        (WordyEnv, r"WordyEnv.get_state\(\) returned a generator"),
    ],
)
def test_what_cannot_be_saved_is_named(make: type[DriftEnv], reason: str) -> None:
    envs = SyncEnvs([make()])
    envs.reset(0)
    envs.step(np.zeros(1, dtype=np.int64))

    assert envs.exactness == "learner-exact"
    assert re.search(reason, envs.inexact_because)


def test_learner_exact_environments_begin_new_episodes_and_always_the_same() -> None:
    saved = SyncEnvs([OpaqueEnv(), OpaqueEnv()])
    saved.reset(3)
    first = np.array(saved.obs)
    for _ in range(5):
        saved.step(np.zeros(2, dtype=np.int64))
    state = through_a_file(saved.state_dict())

    shown: list[list[float]] = []
    for _ in range(2):
        fresh = SyncEnvs([OpaqueEnv(), OpaqueEnv()])
        fresh.load_state_dict(state)
        shown.append(np.ravel(np.asarray(fresh.obs)).tolist())
        assert fresh.episode_lengths.tolist() == [0, 0]

    assert shown[0] == shown[1]
    assert shown[0] != np.ravel(first).tolist()


def test_a_state_of_other_environments_is_refused() -> None:
    state = SyncEnvs([CountingEnv()]).state_dict()

    with pytest.raises(EnvStateError, match="saved for num_envs=1, but here num_envs=2"):
        SyncEnvs([CountingEnv(), CountingEnv()]).load_state_dict(state)
    with pytest.raises(EnvStateError, match="saved for envs='CountingEnv', but here envs='DriftEnv'"):
        SyncEnvs([DriftEnv()]).load_state_dict(state)
    with pytest.raises(EnvStateError, match="have the version 99"):
        SyncEnvs([CountingEnv()]).load_state_dict({**state, "version": 99})


def test_a_state_of_other_wrappers_is_refused() -> None:
    envs = SyncEnvs([TimeLimit(CountingEnv(), 9)])
    envs.reset(0)

    with pytest.raises(
        EnvStateError, match="saved with a TimeLimit at the outermost layer, but here stands a Counting"
    ):
        SyncEnvs([CountingEnv()]).load_state_dict(envs.state_dict())


def test_a_damaged_array_is_refused() -> None:
    envs = SyncEnvs([CountingEnv()])
    envs.reset(0)
    state = envs.state_dict()
    state["arrays"]["rewards"] = np.zeros(5)

    with pytest.raises(EnvStateError, match=r"The saved array 'rewards' is float64\[5\], expected float32\[1\]"):
        envs.load_state_dict(state)
