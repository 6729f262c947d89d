"""Grids of codes as one vector of ones and zeros: what a network of linear layers reads best, and fast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hookloop.errors import UnknownNameError
from hookloop.rl.envs.base import Envs
from hookloop.rl.envs.errors import EnvMismatchError
from hookloop.rl.envs.wrapping import WrappedEnvs
from hookloop.rl.specs import SINGLE, Array, ArraySpec, Observations, ObservationSpec


class OneHotObservations(WrappedEnvs):
    """Writes each code of an observation as a one among zeros, all in one float32 vector.

    A code of at least the number of its values is written as the largest one there is. Parts of the observation that
    are not named are left out.

    Args:
        envs: The environments, with whole numbers as observations.
        num_values: By key (``array`` for an observation that is no dict): how many values there are, for each channel
            of the last axis; one number where all entries are alike. MiniGrid's is ``{"image": (11, 6, 4)}``.
    """

    def __init__(self, envs: Envs, num_values: Mapping[str, Sequence[int]]) -> None:
        super().__init__(envs)
        self._parts = [(key, *_places(key, envs.observation, counts)) for key, counts in num_values.items()]
        if not self._parts:
            raise EnvMismatchError("Nothing would be observed: name at least one part of the observation.")
        width = 0
        for _, starts, largest in self._parts:
            starts += width
            width = int(starts[-1] + largest[-1] + 1)
        self._observation = ObservationSpec.single(ArraySpec((width,), "float32"))
        self._obs = np.zeros((envs.num_envs, width), dtype=np.float32)
        self._final_obs = np.zeros_like(self._obs)
        self._row_starts = np.arange(envs.num_envs)[:, None] * width
        self._indices = [np.zeros((envs.num_envs, len(starts)), dtype=np.int64) for _, starts, _ in self._parts]

    @property
    def observation(self) -> ObservationSpec:
        """One vector."""
        return self._observation

    @property
    def obs(self) -> Observations:
        """What to act on next, as ones and zeros."""
        return self._obs

    @property
    def final_obs(self) -> Observations:
        """The true last observations, as ones and zeros."""
        return self._final_obs

    def reset(self, seed: int) -> None:
        """Begin new episodes everywhere."""
        self.envs.reset(seed)
        self._write(self.envs.obs, self._obs)

    def step(self, actions: Array) -> None:
        """Act once in every environment."""
        self.envs.step(actions)
        self._write(self.envs.obs, self._obs)
        if self.envs.finished:
            self._write(self.envs.final_obs, self._final_obs)

    def show_again(self, rows: slice) -> None:
        """Take over the rows in which other episodes go on."""
        super().show_again(rows)
        self._write(self.envs.obs, self._obs)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        super().load_state_dict(state)
        self._write(self.envs.obs, self._obs)
        self._write(self.envs.final_obs, self._final_obs)

    def _write(self, raw: Observations, target: Array) -> None:
        target.fill(0.0)
        flat = target.reshape(-1)
        for (key, starts, largest), indices in zip(self._parts, self._indices, strict=True):
            codes = raw[key] if isinstance(raw, dict) else raw
            np.minimum(codes.reshape(len(target), -1), largest, out=indices)
            indices += starts
            indices += self._row_starts
            flat[indices] = 1.0


def _places(key: str, observation: ObservationSpec, counts: Sequence[int]) -> tuple[Array, Array]:
    """Return where the ones of each entry begin, from 0, and each entry's largest code."""
    known = observation.arrays if observation.is_dict else {SINGLE: observation.array}
    if key not in known:
        raise UnknownNameError("part", key, known, where="of the observation")
    spec = known[key]
    last = spec.shape[-1] if spec.shape else 1
    if spec.is_float:
        raise EnvMismatchError(f"The observation {key!r} is {spec.dtype}; only whole numbers can be written as ones.")
    if len(counts) not in (1, last) or min(counts) < 1:
        raise EnvMismatchError(
            f"The observation {key!r} has {last} channels, got the numbers of values {list(counts)}; "
            "give one that is at least 1, or one for each channel."
        )
    values = np.resize(np.asarray(counts, dtype=np.int64), max(spec.size, 1))
    return np.cumsum(values) - values, values - 1
