"""Vector environments for benchmarks/ppo.py in which an episode restarts within the step that ends it.

Gymnasium's native CartPole and EnvPool restart an episode one step late, with a filler row in between. These
classes restart it at once and hand out the last observation, so that every row is a real transition.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple, Protocol

import gymnasium as gym
import numpy as np
from _ppo_work import RECENT_EPISODES, Work

Array = np.ndarray[Any, Any]


class Step(NamedTuple):
    """One step of all environments; ``final_obs`` has one row for each environment in ``ended``."""

    obs: Array
    rewards: Array
    terminated: Array
    truncated: Array
    ended: Array
    final_obs: Array


class VectorEnvs(Protocol):
    """What the peers step: Gymnasium spaces of one environment, a reset and a step for all."""

    num_envs: int
    observation_space: gym.Space[Any]
    action_space: gym.Space[Any]

    def reset(self) -> Array: ...
    def step(self, actions: Array) -> Step: ...


def make_envs(work: Work) -> VectorEnvs:
    """Build the environments that the work names."""
    kinds = {"sync": SyncEnvs, "native": NativeCartPole, "envpool": EnvPoolEnvs}
    return kinds[work.env_kind](work)


class SyncEnvs:
    """Gymnasium's ``SyncVectorEnv``: single environments stepped one after the other."""

    def __init__(self, work: Work) -> None:
        mode = {"autoreset_mode": gym.vector.AutoresetMode.SAME_STEP}
        self._envs = gym.make_vec(work.env_id, work.num_envs, vectorization_mode="sync", vector_kwargs=mode)
        self._seed = work.seed
        self.num_envs = work.num_envs
        self.observation_space = self._envs.single_observation_space
        self.action_space = self._envs.single_action_space

    def reset(self) -> Array:
        return self._envs.reset(seed=self._seed)[0]

    def step(self, actions: Array) -> Step:
        obs, rewards, terminated, truncated, infos = self._envs.step(actions)
        ended = np.flatnonzero(terminated | truncated)
        final_obs = np.stack(infos["final_obs"][ended]) if ended.size else obs[:0]
        return Step(obs, rewards, terminated, truncated, ended, final_obs)


class NativeCartPole:
    """Gymnasium's own vectorised CartPole, whose public state is reset here before it does so itself."""

    def __init__(self, work: Work) -> None:
        self._envs: Any = gym.make_vec(work.env_id, work.num_envs, vectorization_mode="vector_entry_point")
        self._seed = work.seed
        self.num_envs = work.num_envs
        self.observation_space = self._envs.single_observation_space
        self.action_space = self._envs.single_action_space

    def reset(self) -> Array:
        return self._envs.reset(seed=self._seed)[0]

    def step(self, actions: Array) -> Step:
        envs = self._envs
        obs, rewards, terminated, truncated, _ = envs.step(actions)
        ended = np.flatnonzero(envs.prev_done)
        final_obs = obs[ended]
        if ended.size:
            fresh = envs.np_random.uniform(envs.low, envs.high, size=(4, ended.size))
            envs.state[:, ended] = fresh
            envs.steps[ended] = 0
            envs.prev_done[ended] = False
            obs[ended] = fresh.T
        return Step(obs, rewards, terminated, truncated, ended, final_obs)


class EnvPoolEnvs:
    """EnvPool in its synchronous mode."""

    def __init__(self, work: Work) -> None:
        import envpool

        self._envs: Any = envpool.make_gymnasium(
            work.env_id, num_envs=work.num_envs, num_threads=work.threads, seed=work.seed
        )
        self.num_envs = work.num_envs
        shape = self._envs.observation_space.shape
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, shape, np.float32)
        self.action_space = self._envs.action_space

    def reset(self) -> Array:
        return self._envs.reset()[0]

    def step(self, actions: Array) -> Step:
        obs, rewards, terminated, truncated, _ = self._envs.step(actions)
        ended = np.flatnonzero(terminated | truncated)
        final_obs = obs[ended]
        if ended.size:
            fresh, infos = self._envs.reset(ended.astype(np.int32))
            obs[infos["env_id"]] = fresh
        return Step(obs, rewards, terminated, truncated, ended, final_obs)


class EpisodeReturns:
    """Sums up the rewards of running episodes and keeps the returns of the last finished ones."""

    def __init__(self, num_envs: int) -> None:
        self._running = np.zeros(num_envs)
        self.recent: deque[float] = deque(maxlen=RECENT_EPISODES)
        self.episodes = 0

    def add(self, step: Step) -> None:
        self._running += step.rewards
        if step.ended.size:
            self.recent.extend(self._running[step.ended].tolist())
            self._running[step.ended] = 0.0
            self.episodes += step.ended.size

    @property
    def mean(self) -> float:
        return float(np.mean(self.recent)) if self.recent else 0.0
