"""What workers and their peers compute in the benchmark: a synthetic environment that costs what it is told to.

A step *computes* for its time, measured as time of the processor, so that two steps on one core take twice as long; or
it *sleeps*, as an environment that waits for another program does. The time of a step varies by up to ``spread`` of its
mean, evenly.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Box, Discrete
from torch import Tensor, nn

OBS = 8
HIDDEN = 64


@dataclass(frozen=True, slots=True)
class Load:
    """What a step costs."""

    name: str
    seconds: float
    sleeps: bool = False
    spread: float = 0.5


class CostlyEnv(gymnasium.Env[np.ndarray, int]):
    observation_space = Box(-1.0, 1.0, (OBS,), np.float32)
    action_space = Discrete(2)
    metadata = {"render_modes": []}  # noqa: RUF012 - gymnasium reads it from the class

    def __init__(self, load: Load) -> None:
        self._load = load
        self._state = np.zeros(OBS, np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self._state = self.np_random.uniform(-1.0, 1.0, OBS).astype(np.float32)
        return self._state, {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        seconds = self._load.seconds * (1.0 + self._load.spread * self.np_random.uniform(-1.0, 1.0))
        if self._load.sleeps:
            time.sleep(seconds)
        else:
            until = time.thread_time_ns() + seconds * 1e9
            while time.thread_time_ns() < until:
                pass
        self._state = np.roll(self._state, 1 + int(action))
        return self._state, float(self._state[0]), False, False, {}

    def render(self) -> None:
        return None


def network() -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Linear(OBS, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 2)
        )


@torch.inference_mode()
def actions_for(policy: nn.Module, obs: np.ndarray) -> np.ndarray:
    return policy(torch.from_numpy(obs)).argmax(-1).numpy()


class Collector:
    """Plays ``steps`` steps in each of ``envs`` environments and returns all it saw."""

    def __init__(self, load: Load, envs: int) -> None:
        self._envs = [CostlyEnv(load) for _ in range(envs)]
        self._policy = network()

    def take_weights(self, version: int, tensors: Mapping[str, Tensor]) -> None:
        self._policy.load_state_dict(dict(tensors))

    def perform(self, payload: Any) -> Any:
        count = len(self._envs)
        seen = np.empty((payload["steps"], count, OBS), np.float32)
        acted = np.empty((payload["steps"], count), np.int64)
        rewards = np.empty((payload["steps"], count), np.float32)
        obs = np.stack([env.reset(seed=payload["seed"] + index)[0] for index, env in enumerate(self._envs)])
        for step in range(payload["steps"]):
            actions = actions_for(self._policy, obs)
            seen[step], acted[step] = obs, actions
            for index, env in enumerate(self._envs):
                obs[index], rewards[step, index], *_ = env.step(int(actions[index]))
        return {"obs": seen, "actions": acted, "rewards": rewards}

    def close(self) -> None:
        pass


class Keeper:
    """Takes weights and keeps a copy, as a policy would."""

    def __init__(self) -> None:
        self._kept: dict[str, Tensor] = {}

    def take_weights(self, version: int, tensors: Mapping[str, Tensor]) -> None:
        for name, tensor in tensors.items():
            self._kept.setdefault(name, torch.empty_like(tensor)).copy_(tensor)

    def perform(self, payload: Any) -> Any:
        return payload

    def close(self) -> None:
        pass
