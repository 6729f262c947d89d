"""The face of environments, passed through: what a wrapper with the same face starts from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookloop.rl.envs.base import Envs, EnvState, Episode, Exactness
from hookloop.rl.specs import ActionSpec, Array, Observations, ObservationSpec


class WrappedEnvs:
    """Shows what the environments inside show; a subclass replaces what it changes."""

    def __init__(self, envs: Envs) -> None:
        self.envs = envs

    @property
    def num_envs(self) -> int:
        """N."""
        return self.envs.num_envs

    @property
    def observation(self) -> ObservationSpec:
        """What one environment's observation is made of."""
        return self.envs.observation

    @property
    def action(self) -> ActionSpec:
        """What one environment's action is."""
        return self.envs.action

    @property
    def obs(self) -> Observations:
        """What to act on next."""
        return self.envs.obs

    @property
    def final_obs(self) -> Observations:
        """The true last observations, in rows whose episode ended on this step."""
        return self.envs.final_obs

    @property
    def rewards(self) -> Array:
        """float32 [N]."""
        return self.envs.rewards

    @property
    def terminated(self) -> Array:
        """bool [N]: the episode ended for good."""
        return self.envs.terminated

    @property
    def truncated(self) -> Array:
        """bool [N]: the episode was cut off."""
        return self.envs.truncated

    @property
    def valid(self) -> Array:
        """bool [N]: False marks a filler."""
        return self.envs.valid

    @property
    def has_fillers(self) -> bool:
        """Whether ``valid`` can ever be False."""
        return self.envs.has_fillers

    @property
    def action_masks(self) -> Array | None:
        """bool [N, A], or None."""
        return self.envs.action_masks

    @property
    def finished(self) -> list[Episode]:
        """The episodes that ended on this step."""
        return self.envs.finished

    @property
    def episode_returns(self) -> Array:
        """float64 [N]: the returns so far of the running episodes."""
        return self.envs.episode_returns

    @property
    def episode_lengths(self) -> Array:
        """int64 [N]: the lengths so far of the running episodes."""
        return self.envs.episode_lengths

    @property
    def num_double_ends(self) -> int:
        """How often both flags were set on one step."""
        return self.envs.num_double_ends

    @property
    def exactness(self) -> Exactness:
        """What a resume promises."""
        return self.envs.exactness

    @property
    def inexact_because(self) -> str:
        """Why the environments cannot save themselves."""
        return self.envs.inexact_because

    def reset(self, seed: int) -> None:
        """Begin new episodes everywhere."""
        self.envs.reset(seed)

    def step(self, actions: Array) -> None:
        """Act once in every environment."""
        self.envs.step(actions)

    def show_again(self, rows: slice) -> None:
        """Take over rows in which, between two steps, other episodes have come to go on."""
        if isinstance(self.envs, WrappedEnvs):
            self.envs.show_again(rows)

    def check_next_steps(self, count: int) -> None:
        """Check the results of the next ``count`` steps in full."""
        self.envs.check_next_steps(count)

    def state_dict(self) -> EnvState:
        """Return plain data to go on from."""
        return {"envs": self.envs.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        self.envs.load_state_dict(state["envs"])

    def close(self) -> None:
        """Release what the environments hold."""
        self.envs.close()
