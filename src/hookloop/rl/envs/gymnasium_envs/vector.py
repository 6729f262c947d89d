"""The adapter for Gymnasium's vector environments, in all three ways in which they reset finished ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from hookloop.rl.envs.arrays import Capture, EnvArrays
from hookloop.rl.envs.base import EnvState
from hookloop.rl.envs.errors import EnvMismatchError
from hookloop.rl.envs.field_checks import check_batch, check_flags, check_rewards
from hookloop.rl.envs.gymnasium_envs.layers import EnvLayers
from hookloop.rl.envs.gymnasium_envs.masks import mask_reader, refuse_late_mask
from hookloop.rl.envs.gymnasium_envs.spaces import ActionTranslation, observation_layout
from hookloop.rl.envs.infos import NO_INFO
from hookloop.rl.specs import Array


class VectorEnvs(EnvArrays):
    """Adapts a ``gymnasium.vector.VectorEnv``; it is reset once here, to see whether it gives action masks.

    Args:
        vector_env: The environments; they belong to the adapter from now on.
        who: What to call them in messages and saved states.
    """

    def __init__(self, vector_env: VectorEnv, *, who: str = "") -> None:
        who = who or type(vector_env.unwrapped).__name__
        self._layout = observation_layout(vector_env.single_observation_space)
        self._to_env = ActionTranslation(vector_env.single_action_space)
        super().__init__(num_envs=vector_env.num_envs, observation=self._layout.spec, action=self._to_env.spec, who=who)
        self._vector_env = vector_env
        self._mode = autoreset_mode(vector_env, who)
        self.has_fillers = self._mode is AutoresetMode.NEXT_STEP
        # Views of one array, each with the axes of an observation, for copying only the rows that ended.
        self._ended_like = [self._ended.reshape(-1, *[1] * (leaf.ndim - 1)) for leaf in self._obs_leaves]
        _, infos = vector_env.reset(seed=0)
        self._masks = mask_reader(
            self.action, num_envs=self.num_envs, is_observed=self._layout.has_mask, first_infos=infos, who=who
        )
        self.action_masks = None if self._masks is None else self._masks.masks
        self._layers = EnvLayers([vector_env])

    def step(self, actions: Array) -> None:
        """Act once in every environment."""
        if self._steps_to_check:
            self._begin_checked_step(actions)
            results = self._vector_env.step(self._to_env(actions))
            self._check_step(*results)
        else:
            results = self._vector_env.step(self._to_env(actions))
        observations, rewards, terminated, truncated, infos = results
        self._store_obs(observations)
        np.copyto(self._raw_rewards, rewards)
        np.copyto(self.terminated, terminated)
        np.copyto(self.truncated, truncated)
        if self.has_fillers:
            self._mark_fillers()
        if self._masks is not None:
            self._masks.read_batch(observations, infos)
        if self._note_ends():
            self._take_ends(infos)
        self._settle()

    def close(self) -> None:
        """Close the vector environment."""
        self._vector_env.close()

    def _reset(self, seed: int) -> None:
        env = self._vector_env
        # A reset seeds the environments alone; the spaces they may draw from would begin with the system's entropy.
        for space in (env.single_observation_space, env.single_action_space, env.observation_space, env.action_space):
            space.seed(seed)
        observations, infos = env.reset(seed=seed)
        self._check_observations("observations", self._layout.leaves(observations, self.who))
        self._store_obs(observations)
        if self._masks is not None:
            self._masks.read_batch(observations, infos)
            self._masks.check()

    def _capture(self) -> Capture:
        return self._layers.capture()

    def _restore(self, state: EnvState) -> None:
        self._layers.restore(state)

    def _store_obs(self, observations: Any) -> None:
        if not self.observation.is_dict:
            np.copyto(self._obs_leaves[0], observations)
            return
        for leaf, received in zip(self._obs_leaves, self._layout.leaves(observations, self.who), strict=True):
            np.copyto(leaf, received)

    def _mark_fillers(self) -> None:
        """Mark the rows whose episode ended on the step before: theirs was a reset, and the action was ignored."""
        np.logical_not(self._ended, out=self.valid)
        if self._any_ended:
            np.copyto(self._raw_rewards, 0.0, where=self._ended)
            np.logical_and(self.terminated, self.valid, out=self.terminated)
            np.logical_and(self.truncated, self.valid, out=self.truncated)

    def _take_ends(self, infos: dict[str, Any]) -> None:
        """Keep the last observations of the episodes that ended and, if nobody else does, begin new ones."""
        if self._mode is AutoresetMode.SAME_STEP:
            self._take_final_obs(infos)
            self._keep_row_infos(infos.get("final_info", NO_INFO))
            return
        self._keep_row_infos(infos)
        for final, leaf, ended in zip(self._final_leaves, self._obs_leaves, self._ended_like, strict=True):
            np.copyto(final, leaf, where=ended)
        if self._mode is AutoresetMode.DISABLED:
            # Gymnasium takes the mask out of the options, and the environment may keep it: both are new each time.
            observations, infos = self._vector_env.reset(options={"reset_mask": self._ended.copy()})
            begun = self._layout.leaves(observations, self.who)
            for leaf, received, ended in zip(self._obs_leaves, begun, self._ended_like, strict=True):
                np.copyto(leaf, received, where=ended)
            if self._masks is not None:
                self._masks.read_batch(observations, infos, rows=self._ended)

    def _take_final_obs(self, infos: dict[str, Any]) -> None:
        final = infos.get("final_obs")
        indices = np.flatnonzero(self._ended)
        # Gymnasium's own vector environments give an array of objects, one observation or None for each environment.
        is_by_row = isinstance(final, np.ndarray) and final.dtype.kind == "O"
        if final is None or (is_by_row and any(final[index] is None for index in indices)):
            raise EnvMismatchError(
                f"{self.who} ended an episode in environment {indices[0]} without infos['final_obs'], which the "
                "autoreset mode SAME_STEP promises. Put the last observation there, or declare another mode."
            )
        if is_by_row:
            for index in indices:
                for leaf, received in zip(self._final_leaves, self._layout.leaves(final[index], self.who), strict=True):
                    leaf[index] = received
        else:
            for leaf, received in zip(self._final_leaves, self._layout.leaves(final, self.who), strict=True):
                leaf[indices] = np.asarray(received)[indices]

    def _check_step(
        self, observations: Any, rewards: object, terminated: object, truncated: object, infos: object
    ) -> None:
        self._check_observations("observations", self._layout.leaves(observations, self.who))
        check_rewards(rewards, num_envs=self.num_envs, who=self.who)
        check_flags("terminated", terminated, num_envs=self.num_envs, who=self.who)
        check_flags("truncated", truncated, num_envs=self.num_envs, who=self.who)
        if not isinstance(infos, dict):
            raise EnvMismatchError(
                f"{self.who} gave infos as {type(infos).__name__}, expected a dict of arrays, one entry for each "
                "environment. Leave out the wrapper DictInfoToList."
            )
        if self._masks is None:
            refuse_late_mask(self.action, infos, self.who)
        else:
            self._masks.read_batch(observations, infos)
            self._masks.check()

    def _check_observations(self, field: str, leaves: list[Any]) -> None:
        for (key, spec), received in zip(self.observation.arrays.items(), leaves, strict=True):
            name = f"{field}[{key!r}]" if self.observation.is_dict else field
            check_batch(name, received, spec, num_envs=self.num_envs, who=self.who)


def autoreset_mode(vector_env: VectorEnv, who: str) -> AutoresetMode:
    """Read how a vector environment resets finished ones; a wrong guess would corrupt every episode."""
    mode = vector_env.metadata.get("autoreset_mode")
    try:
        return AutoresetMode(mode)
    except ValueError as error:
        known = ", ".join(f"AutoresetMode.{known.name}" for known in AutoresetMode)
        raise EnvMismatchError(
            f"{who} says metadata['autoreset_mode']={mode!r}; set it to one of {known}, as its step() behaves."
        ) from error
