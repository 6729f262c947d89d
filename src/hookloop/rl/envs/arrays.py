"""The arrays that every adapter fills, the episodes they add up to, and how both are saved."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hookloop.rl.envs.base import EnvState, Episode, Exactness
from hookloop.rl.envs.errors import ActionMismatchError, EnvStateError
from hookloop.rl.envs.infos import NO_INFO, row_numbers
from hookloop.rl.specs import ActionSpec, Array, ContinuousActions, MultiDiscreteActions, Observations, ObservationSpec

STATE_VERSION = 1
CHECKED_STEPS = 2


@dataclass(frozen=True, slots=True)
class Capture:
    """What an adapter could save of its environments, and the reason why it is not everything."""

    state: EnvState
    inexact_because: str = ""


class EnvArrays(ABC):
    """The half of an adapter that is the same for every simulator.

    A subclass implements ``step``, in which it fills ``obs``, ``terminated``, ``truncated`` and the float64
    rewards, calls ``_note_ends``, fills ``final_obs`` and ``_end_infos`` where an episode ended, and calls ``_settle``.
    """

    has_fillers = False

    def __init__(self, *, num_envs: int, observation: ObservationSpec, action: ActionSpec, who: str) -> None:
        self.num_envs, self.observation, self.action, self.who = num_envs, observation, action, who
        self.obs: Observations = observation.zeros(num_envs)
        self.final_obs: Observations = observation.zeros(num_envs)
        self.rewards = np.zeros(num_envs, dtype=np.float32)
        self.terminated = np.zeros(num_envs, dtype=bool)
        self.truncated = np.zeros(num_envs, dtype=bool)
        self.valid = np.ones(num_envs, dtype=bool)
        self.action_masks: Array | None = None
        self.finished: list[Episode] = []
        self.episode_returns = np.zeros(num_envs, dtype=np.float64)
        self.episode_lengths = np.zeros(num_envs, dtype=np.int64)
        self.num_double_ends = 0
        self._raw_rewards = np.zeros(num_envs, dtype=np.float64)
        self._ended = np.zeros(num_envs, dtype=bool)
        self._any_ended = False
        self._end_infos: dict[int, Mapping[str, float]] = {}
        self._obs_leaves, self._final_leaves = _leaves(self.obs), _leaves(self.final_obs)
        self._seed: int | None = None
        self._vector_steps = 0
        self._steps_to_check = CHECKED_STEPS

    @abstractmethod
    def step(self, actions: Array) -> None:
        """Act once in every environment."""

    @abstractmethod
    def close(self) -> None:
        """Release what the environments hold."""

    @abstractmethod
    def _reset(self, seed: int) -> None:
        """Reset every environment and fill ``obs`` and ``action_masks``."""

    @abstractmethod
    def _capture(self) -> Capture:
        """Collect the state of the environments."""

    @abstractmethod
    def _restore(self, state: EnvState) -> None:
        """Put the environments into a captured state."""

    @property
    def exactness(self) -> Exactness:
        """What a resume from ``state_dict()`` promises, as things stand now."""
        return "learner-exact" if self.inexact_because else "bit-exact"

    @property
    def inexact_because(self) -> str:
        """Why the environments cannot save themselves; empty if they can."""
        return self._capture().inexact_because

    def reset(self, seed: int) -> None:
        """Begin new episodes everywhere; the same seed gives the same episodes."""
        self._seed, self._vector_steps = int(seed), 0
        self._steps_to_check = max(self._steps_to_check, CHECKED_STEPS)
        self.finished, self.num_double_ends, self._any_ended = [], 0, False
        self.valid.fill(True)
        for array in (self.rewards, self.terminated, self.truncated, self._ended, *self._final_leaves):
            array.fill(0)
        self.episode_returns.fill(0.0)
        self.episode_lengths.fill(0)
        self._reset(self._seed)

    def check_next_steps(self, count: int) -> None:
        """Check the results of the next ``count`` steps in full."""
        self._steps_to_check = max(self._steps_to_check, count)

    def _note_ends(self) -> bool:
        """Join the two flags into one, and tell whether any episode ended."""
        np.logical_or(self.terminated, self.truncated, out=self._ended)
        self._any_ended = bool(np.count_nonzero(self._ended))
        if self._any_ended:
            both = int(np.count_nonzero(self.terminated & self.truncated))
            if both:
                self.num_double_ends += both
                # The end is real and has no future value, so nothing must be bootstrapped from it.
                np.greater(self.truncated, self.terminated, out=self.truncated)
        return self._any_ended

    def _settle(self) -> None:
        """Add this step to the running episodes and close those that ended."""
        np.copyto(self.rewards, self._raw_rewards, casting="same_kind")
        self.episode_returns += self._raw_rewards
        if self.has_fillers:
            self.episode_lengths += self.valid
        else:
            self.episode_lengths += 1
        self._vector_steps += 1
        self.finished = self._finish() if self._any_ended else []

    def _finish(self) -> list[Episode]:
        indices = np.flatnonzero(self._ended)
        returns, lengths = self.episode_returns[indices].tolist(), self.episode_lengths[indices].tolist()
        self.episode_returns[indices] = 0.0
        self.episode_lengths[indices] = 0
        episodes = map(Episode, indices.tolist(), returns, lengths)
        if not self._end_infos:
            return list(episodes)
        infos, self._end_infos = self._end_infos, {}
        return [episode._replace(infos=infos.get(episode.env_index, NO_INFO)) for episode in episodes]

    def _keep_row_infos(self, infos: Mapping[str, Any]) -> None:
        """Keep what a vector environment tells of the episodes that ended."""
        if infos:
            self._end_infos = {index: row_numbers(infos, index) for index in np.flatnonzero(self._ended).tolist()}

    def _begin_checked_step(self, actions: Array) -> None:
        if self._seed is None:
            raise ActionMismatchError(f"{self.who} was stepped before it was reset. Call reset(seed) first.")
        check_actions(actions, self.action, num_envs=self.num_envs, who=self.who)
        self._steps_to_check -= 1

    def state_dict(self) -> EnvState:
        """Return plain data from which ``load_state_dict`` goes on, with the same bits if ``exactness`` says so."""
        captured = self._capture()
        state: EnvState = {
            "version": STATE_VERSION,
            "made_of": self._made_of(),
            "seed": self._seed,
            "vector_steps": self._vector_steps,
            "inexact_because": captured.inexact_because,
        }
        if not captured.inexact_because:
            state["envs"] = captured.state
            state["arrays"] = {name: array.copy() for name, array in self._saved_arrays().items()}
            state["num_double_ends"] = self.num_double_ends
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state, in environments made the same way; learner-exact ones begin new episodes."""
        self._require_same_make(state)
        if state["inexact_because"]:
            if state["seed"] is not None:
                self.reset(_seed_of_the_resume(int(state["seed"]), int(state["vector_steps"])))
            return
        self._seed, self._vector_steps = state["seed"], int(state["vector_steps"])
        self._restore(state["envs"])
        for name, array in self._saved_arrays().items():
            _fill(array, state["arrays"].get(name), name)
        np.logical_or(self.terminated, self.truncated, out=self._ended)
        self._any_ended = bool(self._ended.any())
        self.num_double_ends, self.finished = int(state["num_double_ends"]), []
        self._steps_to_check = CHECKED_STEPS

    def _saved_arrays(self) -> dict[str, Array]:
        arrays = {f"obs/{key}": leaf for key, leaf in zip(self.observation.arrays, self._obs_leaves, strict=True)}
        arrays |= {f"final/{key}": leaf for key, leaf in zip(self.observation.arrays, self._final_leaves, strict=True)}
        names = ("rewards", "terminated", "truncated", "valid", "episode_returns", "episode_lengths")
        arrays |= {name: getattr(self, name) for name in names}
        if self.action_masks is not None:
            arrays["action_masks"] = self.action_masks
        return arrays

    def _made_of(self) -> dict[str, Any]:
        observation = {key: f"{spec.dtype}{list(spec.shape)}" for key, spec in self.observation.arrays.items()}
        return {"envs": self.who, "num_envs": self.num_envs, "observation": observation, "action": str(self.action)}

    def _require_same_make(self, state: Mapping[str, Any]) -> None:
        version = state.get("version")
        if version != STATE_VERSION:
            raise EnvStateError(
                f"The saved environments have the version {version!r}, this release reads version {STATE_VERSION}. "
                "Resume with the release that wrote them."
            )
        saved, present = state["made_of"], self._made_of()
        for field in present:
            if saved.get(field) != present[field]:
                raise EnvStateError(
                    f"The state was saved for {field}={saved.get(field)!r}, but here {field}={present[field]!r}. "
                    "Make the environments as they were made for the saved run, or start a new run."
                )


def check_actions(actions: Array, action: ActionSpec, *, num_envs: int, who: str) -> None:
    """Refuse actions whose shape, dtype or values the environments cannot take."""
    expected = (num_envs, *action.shape)
    if not isinstance(actions, np.ndarray) or actions.shape != expected:
        shape = f"shape {np.shape(actions)}" if isinstance(actions, np.ndarray) else f"type {type(actions).__name__}"
        raise ActionMismatchError(f"{who} was given actions of {shape}, expected a numpy array of shape {expected}.")
    if not np.can_cast(actions.dtype, action.dtype, "same_kind"):
        raise ActionMismatchError(f"{who} was given actions of dtype {actions.dtype}, expected {action.dtype}.")
    if isinstance(action, ContinuousActions):
        bad = ~np.isfinite(actions)
    else:
        counts = action.nvec if isinstance(action, MultiDiscreteActions) else action.n
        bad = (actions < 0) | (actions >= np.asarray(counts))
    if bad.any():
        index = int(np.argwhere(bad)[0][0])
        raise ActionMismatchError(
            f"{who} was given the action {actions[index]} for environment {index}, not in {action}."
        )


def _leaves(observations: Observations) -> list[Array]:
    return list(observations.values()) if isinstance(observations, dict) else [observations]


def _fill(array: Array, saved: object, name: str) -> None:
    received = np.asarray(saved)
    if saved is None or received.shape != array.shape or received.dtype != array.dtype:
        raise EnvStateError(
            f"The saved array {name!r} is {received.dtype}{list(received.shape)}, expected {array.dtype}"
            f"{list(array.shape)}. The state is damaged or of other environments; use another checkpoint."
        )
    np.copyto(array, received)


def _seed_of_the_resume(seed: int, vector_steps: int) -> int:
    """Derive a new seed, so that a resumed run meets new episodes, and the same ones each time it is resumed."""
    return int(np.random.SeedSequence([seed, vector_steps]).generate_state(1)[0]) % 2**31
