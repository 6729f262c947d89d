"""The adapter for EnvPool, whose environments run in threads of C++."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np

from hookloop.errors import MissingExtraError
from hookloop.rl.envs.arrays import Capture, EnvArrays
from hookloop.rl.envs.base import EnvState
from hookloop.rl.envs.errors import EnvStateError, UnknownEnvError
from hookloop.rl.envs.field_checks import check_batch, check_flags, check_rewards
from hookloop.rl.envs.gymnasium_envs.spaces import ActionTranslation, observation_layout
from hookloop.rl.specs import Array


class EnvPoolEnvs(EnvArrays):
    """Adapts an EnvPool in its synchronous mode; it begins a new episode on the step after one ended.

    EnvPool takes its seed when it is made and cannot be asked for its state. So ``reset`` makes a new pool, and a
    resume is learner-exact. Where both flags would be set, EnvPool itself tells of the truncation alone.

    Args:
        id: An id of EnvPool's own list.
        num_envs: How many environments to run.
        kwargs: What to pass on to ``envpool.make``.
    """

    has_fillers = True

    def __init__(self, id: str, num_envs: int, *, kwargs: Mapping[str, Any] | None = None) -> None:
        self._envpool = import_envpool()
        self._id, self._kwargs = id, dict(kwargs or {})
        if id not in self._envpool.list_all_envs():
            raise UnknownEnvError(
                id, self._envpool.list_all_envs(), where="EnvPool", next_step="List all with envpool.list_all_envs()."
            )
        with _without_notes_on_precision():
            spec = self._envpool.make_spec(id, num_envs=num_envs, **self._kwargs)
            self._layout = observation_layout(spec.gymnasium_observation_space)
            self._to_env = ActionTranslation(spec.gymnasium_action_space)
        super().__init__(num_envs=num_envs, observation=self._layout.spec, action=self._to_env.spec, who=id)
        self._pool: Any = None

    def step(self, actions: Array) -> None:
        """Act once in every environment."""
        is_checked = self._steps_to_check > 0
        if is_checked:
            self._begin_checked_step(actions)
        observations, rewards, terminated, truncated, infos = self._pool.step(self._to_env(actions))
        leaves = self._layout.leaves(observations, self.who)
        if is_checked:
            self._check(leaves, rewards, terminated, truncated)
        self._store_obs(leaves)
        np.copyto(self._raw_rewards, rewards)
        np.copyto(self.terminated, terminated)
        np.copyto(self.truncated, truncated)
        np.logical_not(self._ended, out=self.valid)
        if self._note_ends():
            for final, leaf in zip(self._final_leaves, self._obs_leaves, strict=True):
                final[self._ended] = leaf[self._ended]
            self._keep_row_infos(infos)
        self._settle()

    def close(self) -> None:
        """Stop the threads of the pool."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _reset(self, seed: int) -> None:
        self.close()
        with _without_notes_on_precision():
            self._pool = self._envpool.make(
                self._id, env_type="gymnasium", num_envs=self.num_envs, seed=seed, **self._kwargs
            )
            observations, _ = self._pool.reset()
        self._store_obs(self._layout.leaves(observations, self.who))

    def _store_obs(self, leaves: list[Any]) -> None:
        for leaf, received in zip(self._obs_leaves, leaves, strict=True):
            np.copyto(leaf, received)

    def _check(self, leaves: list[Any], rewards: object, terminated: object, truncated: object) -> None:
        for (key, spec), received in zip(self.observation.arrays.items(), leaves, strict=True):
            check_batch(f"observations[{key!r}]", received, spec, num_envs=self.num_envs, who=self.who)
        check_rewards(rewards, num_envs=self.num_envs, who=self.who)
        check_flags("terminated", terminated, num_envs=self.num_envs, who=self.who)
        check_flags("truncated", truncated, num_envs=self.num_envs, who=self.who)

    def _capture(self) -> Capture:
        return Capture({}, "EnvPool keeps its environments in C++ and offers no way to read or set their state")

    def _restore(self, state: EnvState) -> None:
        raise EnvStateError(
            f"{self.who} runs in EnvPool, which cannot go on from a saved state. "
            "Make the environments as they were made for the saved run."
        )


@contextmanager
def _without_notes_on_precision() -> Generator[None]:
    """Silence what Gymnasium says of EnvPool's bounds, which are float64 for float32 spaces: nobody can act on it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*precision lowered.*")
        yield


def import_envpool() -> ModuleType:
    """Import EnvPool or say how to get it."""
    try:
        import envpool
    except ModuleNotFoundError as error:
        raise MissingExtraError("mode='envpool'", "envpool") from error
    return envpool
