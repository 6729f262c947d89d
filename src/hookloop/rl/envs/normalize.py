"""Observations of mean 0 and variance 1, and rewards whose returns have variance 1: wrappers with the same face."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hookloop.rl.envs.base import Envs, EnvState
from hookloop.rl.envs.errors import EnvMismatchError, EnvStateError
from hookloop.rl.envs.running import RunningStatistics
from hookloop.rl.envs.wrapping import WrappedEnvs
from hookloop.rl.specs import Array, ArraySpec, Observations, ObservationSpec


class NormalizedObservations(WrappedEnvs):
    """Shifts and scales floating point observations by their running mean and standard deviation.

    Every observation an environment gives counts once: those acted on, those at which an episode ended, and none of
    them twice, whichever way the environments reset. Integers, such as pixels, pass through as they are.

    Args:
        envs: The environments.
        clip: The largest absolute value that comes out.
    """

    def __init__(self, envs: Envs, clip: float = 10.0) -> None:
        super().__init__(envs)
        _require_positive("clip", clip)
        specs = envs.observation.arrays
        keys = [key for key, spec in specs.items() if spec.is_float]
        if not keys:
            raise EnvMismatchError(
                f"There is nothing to normalise: all observations are integers ({', '.join(sorted(specs))}). "
                "Leave NormalizedObservations out."
            )
        self._observation = ObservationSpec(
            {key: ArraySpec(spec.shape, "float32") if key in keys else spec for key, spec in specs.items()},
            is_dict=envs.observation.is_dict,
        )
        self._obs = self._observation.zeros(envs.num_envs)
        self._final_obs = self._observation.zeros(envs.num_envs)
        self.statistics: Mapping[str, RunningStatistics] = {key: RunningStatistics(specs[key].shape) for key in keys}
        self.is_frozen = False
        self.clip = clip
        self._scratch = {key: np.zeros((envs.num_envs, *specs[key].shape)) for key in keys}

    @property
    def observation(self) -> ObservationSpec:
        """What one environment's observation is made of, normalised."""
        return self._observation

    @property
    def obs(self) -> Observations:
        """What to act on next, normalised."""
        return self._obs

    @property
    def final_obs(self) -> Observations:
        """The true last observations, normalised by the same statistics as ``obs``."""
        return self._final_obs

    def freeze(self) -> None:
        """Stop learning the statistics, for evaluation."""
        self.is_frozen = True

    def reset(self, seed: int) -> None:
        """Begin new episodes everywhere."""
        self.envs.reset(seed)
        if not self.is_frozen:
            self._count(self.envs.obs, None)
        self._write(self.envs.obs, self._obs)

    def step(self, actions: Array) -> None:
        """Act once in every environment."""
        self.envs.step(actions)
        ended = bool(self.envs.finished)
        if not self.is_frozen:
            self._count(self.envs.obs, None)
            if ended and not self.has_fillers:
                # With fillers these were among the observations; without, the first of the next episode were.
                self._count(self.envs.final_obs, self.envs.terminated | self.envs.truncated)
        self._write(self.envs.obs, self._obs)
        if ended:
            self._write(self.envs.final_obs, self._final_obs)

    def show_again(self, rows: slice) -> None:
        """Take over the rows in which other episodes go on."""
        super().show_again(rows)
        self.scale_again()

    def scale_again(self) -> None:
        """Show what to act on next as the statistics now are."""
        self._write(self.envs.obs, self._obs)

    def state_dict(self) -> EnvState:
        """Return the state of the environments and the statistics."""
        return {"envs": self.envs.state_dict(), "statistics": self.statistics_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        self.load_statistics(state["statistics"])
        self.envs.load_state_dict(state["envs"])
        self._write(self.envs.obs, self._obs)
        self._write(self.envs.final_obs, self._final_obs)

    def statistics_state(self) -> EnvState:
        """Return the statistics alone, for an evaluation in other environments."""
        return {key: statistics.state_dict() for key, statistics in self.statistics.items()}

    def load_statistics(self, state: Mapping[str, Any]) -> None:
        """Take over saved statistics."""
        if set(state) != set(self.statistics):
            raise EnvStateError(
                f"The saved statistics are of {sorted(state)}, the observations here are {sorted(self.statistics)}. "
                "Load the statistics of the same environment."
            )
        for key, statistics in self.statistics.items():
            statistics.load_state_dict(state[key])

    def _count(self, observations: Observations, rows: Array | None) -> None:
        for key, statistics in self.statistics.items():
            raw = _part(observations, key)
            statistics.update(raw if rows is None else raw[rows])

    def _write(self, raw: Observations, normalized: Observations) -> None:
        for key in self._observation.arrays:
            statistics, target = self.statistics.get(key), _part(normalized, key)
            if statistics is None:
                np.copyto(target, _part(raw, key))
                continue
            scratch = self._scratch[key]
            np.subtract(_part(raw, key), statistics.mean, out=scratch)
            np.divide(scratch, statistics.scale(), out=scratch)
            np.maximum(scratch, -self.clip, out=scratch)
            np.minimum(scratch, self.clip, out=scratch)
            np.copyto(target, scratch, casting="same_kind")


class NormalizedRewards(WrappedEnvs):
    """Divides rewards by the running standard deviation of the discounted return, without shifting them.

    ``finished`` keeps telling the returns the environments gave.

    Args:
        envs: The environments.
        gamma: The discount the learner uses.
        clip: The largest absolute reward that comes out.
    """

    def __init__(self, envs: Envs, gamma: float, clip: float = 10.0) -> None:
        super().__init__(envs)
        _require_positive("clip", clip)
        if not 0.0 <= gamma <= 1.0:
            raise EnvMismatchError(f"gamma must lie between 0 and 1, got {gamma}.")
        self.statistics = RunningStatistics()
        self.is_frozen = False
        self._gamma, self._clip = gamma, clip
        self._rewards = np.zeros(envs.num_envs, dtype=np.float32)
        self._returns = np.zeros(envs.num_envs, dtype=np.float64)

    @property
    def rewards(self) -> Array:
        """float32 [N], scaled."""
        return self._rewards

    def freeze(self) -> None:
        """Stop learning the statistics, for evaluation."""
        self.is_frozen = True

    def reset(self, seed: int) -> None:
        """Begin new episodes everywhere; the statistics stay."""
        self.envs.reset(seed)
        self._returns.fill(0.0)
        self._rewards.fill(0.0)

    def step(self, actions: Array) -> None:
        """Act once in every environment."""
        self.envs.step(actions)
        self._returns *= self._gamma
        self._returns += self.envs.rewards
        if not self.is_frozen:
            self.statistics.update(self._returns[self.envs.valid] if self.has_fillers else self._returns)
        np.divide(self.envs.rewards, float(self.statistics.scale()), out=self._rewards)
        np.maximum(self._rewards, -self._clip, out=self._rewards)
        np.minimum(self._rewards, self._clip, out=self._rewards)
        self._forget_ended()

    def show_again(self, rows: slice) -> None:
        """Sum up anew in the rows in which other episodes go on: what they had gathered was not kept."""
        super().show_again(rows)
        self._returns[rows] = 0.0

    def state_dict(self) -> EnvState:
        """Return the state of the environments, the statistics and the returns so far."""
        return {
            "envs": self.envs.state_dict(),
            "statistics": self.statistics_state(),
            "returns": self._returns.copy(),
            "rewards": self._rewards.copy(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        self.load_statistics(state["statistics"])
        self.envs.load_state_dict(state["envs"])
        np.copyto(self._returns, np.asarray(state["returns"]))
        np.copyto(self._rewards, np.asarray(state["rewards"]))
        # Environments that could not save themselves began new episodes just now.
        self._forget_ended()

    def statistics_state(self) -> EnvState:
        """Return the statistics alone, for an evaluation in other environments."""
        return self.statistics.state_dict()

    def load_statistics(self, state: Mapping[str, Any]) -> None:
        """Take over saved statistics."""
        self.statistics.load_state_dict(state)

    def _forget_ended(self) -> None:
        self._returns[self.envs.episode_lengths == 0] = 0.0


def _part(observations: Observations, key: str) -> Array:
    return observations[key] if isinstance(observations, dict) else observations


def _require_positive(name: str, value: float) -> None:
    if not value > 0.0:
        raise EnvMismatchError(f"{name} must be above 0, got {value}.")
