"""Environments stepped one after the other in this process, without the detour of Gymnasium's vector environment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import gymnasium

from hookloop.rl.envs.arrays import Capture, EnvArrays
from hookloop.rl.envs.base import EnvState
from hookloop.rl.envs.errors import EnvMismatchError
from hookloop.rl.envs.field_checks import check_flag, check_reward, check_row
from hookloop.rl.envs.gymnasium_envs.layers import EnvLayers
from hookloop.rl.envs.gymnasium_envs.masks import mask_reader, refuse_late_mask
from hookloop.rl.envs.gymnasium_envs.spaces import ActionTranslation, observation_layout
from hookloop.rl.envs.infos import numbers
from hookloop.rl.specs import Array

StepFunction: TypeAlias = Callable[[Any], tuple[Any, Any, Any, Any, dict[str, Any]]]


class SyncEnvs(EnvArrays):
    """Steps single environments in turn and resets each on the step on which its episode ends.

    It gives the same results as ``SyncVectorEnv`` in the mode SAME_STEP, in about three quarters of the time, and
    tells which environment it was that returned something wrong.

    Args:
        envs: The environments, all with the same spaces; they belong to the adapter from now on.
        who: What to call them in messages and saved states.
    """

    def __init__(self, envs: Sequence[gymnasium.Env], *, who: str = "") -> None:
        self.envs = list(envs)
        if not self.envs:
            raise EnvMismatchError("SyncEnvs needs at least one environment, got none.")
        who = who or type(self.envs[0].unwrapped).__name__
        _require_same_spaces(self.envs, who)
        self._layout = observation_layout(self.envs[0].observation_space)
        self._to_env = ActionTranslation(self.envs[0].action_space)
        super().__init__(num_envs=len(envs), observation=self._layout.spec, action=self._to_env.spec, who=who)
        self._only_leaf = None if self._layout.spec.is_dict else self._obs_leaves[0]
        self._reward_list: list[Any] = [0.0] * self.num_envs
        # Looked up once: the lookup through the layers costs as much as a layer itself.
        self._steps: list[StepFunction] = [env.step for env in self.envs]
        self._checked_steps: list[StepFunction] = [partial(self._checked_step, i) for i in range(self.num_envs)]
        infos = [env.reset(seed=index)[1] for index, env in enumerate(self.envs)]
        self._masks = mask_reader(
            self.action, num_envs=self.num_envs, is_observed=self._layout.has_mask, first_infos=infos[0], who=who
        )
        self.action_masks = None if self._masks is None else self._masks.masks
        self._layers = EnvLayers(self.envs)

    def step(self, actions: Array) -> None:
        """Act once in every environment."""
        steps = self._steps
        if self._steps_to_check:
            self._begin_checked_step(actions)
            steps = self._checked_steps
        if self._any_ended:
            self.terminated.fill(False)
            self.truncated.fill(False)
        rewards, only_leaf, masks = self._reward_list, self._only_leaf, self._masks
        for index, action in enumerate(self._to_env(actions)):
            observation, rewards[index], terminated, truncated, info = steps[index](action)
            if terminated or truncated:
                if info:
                    self._end_infos[index] = numbers(info)
                observation, info = self._end(index, observation, terminated, truncated)
            if only_leaf is not None:
                only_leaf[index] = observation
            else:
                self._store_row(self._obs_leaves, index, observation)
            if masks is not None:
                masks.read_row(index, observation, info)
        self._raw_rewards[:] = rewards
        self._note_ends()
        self._settle()

    def close(self) -> None:
        """Close every environment."""
        for env in self.envs:
            env.close()

    def _reset(self, seed: int) -> None:
        for index, env in enumerate(self.envs):
            observation, info = env.reset(seed=seed + index)
            self._check_observation(index, observation)
            self._store_row(self._obs_leaves, index, observation)
            if self._masks is not None:
                self._masks.read_row(index, observation, info)
        if self._masks is not None:
            self._masks.check()

    def _capture(self) -> Capture:
        return self._layers.capture()

    def _restore(self, state: EnvState) -> None:
        self._layers.restore(state)

    def _end(self, index: int, observation: Any, terminated: Any, truncated: Any) -> tuple[Any, dict[str, Any]]:
        self.terminated[index], self.truncated[index] = terminated, truncated
        self._store_row(self._final_leaves, index, observation)
        return self.envs[index].reset()

    def _store_row(self, leaves: list[Array], index: int, observation: Any) -> None:
        for leaf, received in zip(leaves, self._layout.leaves(observation, self.who), strict=True):
            leaf[index] = received

    def _checked_step(self, index: int, action: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        result = self.envs[index].step(action)
        if len(result) != 5:
            raise EnvMismatchError(
                f"{self.who} (environment {index}) gave {len(result)} values from step(), expected five: observation, "
                "reward, terminated, truncated, info."
            )
        observation, reward, terminated, truncated, info = result
        self._check_observation(index, observation)
        check_reward(reward, env_index=index, who=self.who)
        check_flag("terminated", terminated, env_index=index, who=self.who)
        check_flag("truncated", truncated, env_index=index, who=self.who)
        if self._masks is None:
            refuse_late_mask(self.action, info, f"{self.who} (environment {index})")
        return observation, reward, terminated, truncated, info

    def _check_observation(self, index: int, observation: Any) -> None:
        leaves = self._layout.leaves(observation, f"{self.who} (environment {index})")
        for (key, spec), received in zip(self.observation.arrays.items(), leaves, strict=True):
            name = f"the observation[{key!r}]" if self.observation.is_dict else "an observation"
            check_row(name, received, spec, env_index=index, who=self.who)


def _require_same_spaces(envs: list[gymnasium.Env], who: str) -> None:
    first = envs[0]
    for index, env in enumerate(envs[1:], start=1):
        for space in ("observation_space", "action_space"):
            if getattr(env, space) != getattr(first, space):
                raise EnvMismatchError(
                    f"{who}: the {space} of environment {index} is {getattr(env, space)}, that of environment 0 is "
                    f"{getattr(first, space)}. Environments that step together need the same spaces."
                )
