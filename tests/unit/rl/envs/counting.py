"""Environments of which one can say by heart what they give: the number of the episode and of the step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv

Plan = Sequence[tuple[int, str]]
"""Length and end of each episode, over and over; the ends are ``terminated``, ``truncated`` and ``both``."""

PLANS: tuple[Plan, Plan] = (
    ((2, "terminated"), (3, "truncated"), (1, "both")),
    ((3, "truncated"), (2, "terminated")),
)


def counting_space() -> spaces.Box:
    return spaces.Box(0.0, 1e6, (2,), np.float32)


class CountingEnv(gymnasium.Env):
    """Shows (episode, step); the reward is 100 * episode + step, of the step it leads to."""

    def __init__(self, plan: Plan = PLANS[0]) -> None:
        self.observation_space = counting_space()
        self.action_space = spaces.Discrete(2)
        self._plan = tuple(plan)
        self.episode, self.steps = 0, 0
        self.received: list[int] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        if seed is not None:
            self.received = []
        self.episode = 0 if seed is not None else self.episode + 1
        self.steps = 0
        return self._see(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.received.append(int(action))
        self.steps += 1
        length, end = self._plan[self.episode % len(self._plan)]
        ends = self.steps == length
        reward = 100.0 * self.episode + self.steps
        return self._see(), reward, ends and end != "truncated", ends and end != "terminated", {}

    def _see(self) -> np.ndarray:
        return np.array([self.episode, self.steps], dtype=np.float32)


class CountingVectorEnv(VectorEnv):
    """The same as ``CountingEnv``, vectorised by hand, in each way to reset."""

    def __init__(self, plans: Sequence[Plan] = PLANS, mode: AutoresetMode = AutoresetMode.NEXT_STEP) -> None:
        self.num_envs = len(plans)
        self.single_observation_space, self.single_action_space = counting_space(), spaces.Discrete(2)
        self.observation_space = spaces.Box(0.0, 1e6, (self.num_envs, 2), np.float32)
        self.action_space = spaces.MultiDiscrete([2] * self.num_envs)
        self.metadata = {"autoreset_mode": mode}
        self._plans, self._mode = tuple(tuple(plan) for plan in plans), mode
        self._seen = np.zeros((self.num_envs, 2), dtype=np.float32)
        self._done = np.zeros(self.num_envs, dtype=bool)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        if options and "reset_mask" in options:
            self._begin(options["reset_mask"])
        else:
            self._seen[:] = 0.0
        self._done[:] = False
        return self._seen.copy(), {}

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict]:
        fillers = self._done if self._mode is AutoresetMode.NEXT_STEP else np.zeros(self.num_envs, dtype=bool)
        if self._mode is AutoresetMode.DISABLED:
            assert not self._done.any(), "stepped an environment whose episode had ended"
        self._begin(fillers)
        self._seen[~fillers, 1] += 1
        rewards = np.where(fillers, 0.0, 100.0 * self._seen[:, 0] + self._seen[:, 1])
        terminated, truncated = self._flags(fillers)
        self._done = terminated | truncated
        infos: dict[str, Any] = {}
        if self._mode is AutoresetMode.SAME_STEP and self._done.any():
            infos["final_obs"] = self._seen.copy()
            self._begin(self._done)
        return self._seen.copy(), rewards, terminated, truncated, infos

    def _begin(self, rows: np.ndarray) -> None:
        self._seen[rows, 0] += 1
        self._seen[rows, 1] = 0

    def _flags(self, fillers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        terminated, truncated = np.zeros(self.num_envs, dtype=bool), np.zeros(self.num_envs, dtype=bool)
        for index, plan in enumerate(self._plans):
            length, end = plan[int(self._seen[index, 0]) % len(plan)]
            ends = self._seen[index, 1] == length and not fillers[index]
            terminated[index], truncated[index] = ends and end != "truncated", ends and end != "terminated"
        return terminated, truncated
