"""The learner's side of environments that are played elsewhere: what they look like, and where each slot stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hookloop.core import derive_seed
from hookloop.errors import WorkloadError
from hookloop.rl.envs import Envs, EnvState, Episode, Exactness
from hookloop.rl.envs.errors import EnvStateError
from hookloop.rl.specs import Array, Observations

Plain = Any

STATE_VERSION = 1


class SlotEnvs:
    """Stands for environments in slots, which tasks play; it has their face and cannot be stepped.

    The wrappers that scale observations and rewards go around it as they go around other environments: theirs are then
    the statistics that all slots share.

    Args:
        like: Environments made the same way, in any number; what they look like is taken from them.
        num_envs: How many there are in all slots together.
        slots: How many slots; each has as many environments as every other.
    """

    def __init__(self, like: Envs, *, num_envs: int, slots: int) -> None:
        self.num_envs, self.slots = num_envs, slots
        self.envs_per_slot = num_envs // slots
        self.observation, self.action = like.observation, like.action
        self.has_fillers = like.has_fillers
        self.obs: Observations = like.observation.zeros(num_envs)
        self.final_obs: Observations = like.observation.zeros(num_envs)
        self.rewards = np.zeros(num_envs, dtype=np.float32)
        self.terminated = np.zeros(num_envs, dtype=bool)
        self.truncated = np.zeros(num_envs, dtype=bool)
        self.valid = np.ones(num_envs, dtype=bool)
        masks = like.action_masks
        self.action_masks: Array | None = None if masks is None else np.ones((num_envs, *masks.shape[1:]), dtype=bool)
        self.episode_returns = np.zeros(num_envs, dtype=np.float64)
        self.episode_lengths = np.zeros(num_envs, dtype=np.int64)
        self.num_double_ends = 0
        self.finished: list[Episode] = []
        """The episodes that ended on the step that the loop is being told of."""
        self.places: list[Plain] = [None] * slots
        """Where each slot stands; None before its first rollout."""
        self.seed = 0

    @property
    def exactness(self) -> Exactness:
        """What a resume from ``state_dict()`` promises, as things stand now."""
        return "learner-exact" if self.inexact_because else "bit-exact"

    @property
    def inexact_because(self) -> str:
        """Why the environments cannot save themselves; empty if they can, or before the first rollout."""
        reasons = (why_inexact(place["envs"]) for place in self.places if place is not None)
        return next(filter(None, reasons), "")

    def slot_seed(self, slot: int) -> int:
        """Return the seed with which the environments of a slot begin."""
        return derive_seed(self.seed, f"slot {slot}") % 2**31

    def reset(self, seed: int) -> None:
        """Begin new episodes everywhere, with the next rollouts."""
        self.seed = seed
        self.places = [None] * self.slots

    def step(self, actions: Array) -> None:
        """Refuse: only tasks play these environments."""
        raise WorkloadError(
            f"These {self.num_envs} environments are played by tasks, in {self.slots} slots, and cannot be stepped "
            "here; make environments of your own with hookloop.rl.make_envs, or train with workers=null."
        )

    def check_next_steps(self, count: int) -> None:
        """Do nothing: those who make the environments check them."""

    def state_dict(self) -> EnvState:
        """Return where all slots stand."""
        return {"version": STATE_VERSION, "slots": self.slots, "seed": self.seed, "places": list(self.places)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Put all slots where they stood."""
        if state.get("slots") != self.slots or state.get("version") != STATE_VERSION:
            raise EnvStateError(
                f"The state was saved for environments in {state.get('slots', 'no')} slots, here are {self.slots}. "
                "Resume with the slots of the saved run, and with workers if it had any; how many may differ."
            )
        self.seed, self.places = int(state["seed"]), list(state["places"])

    def close(self) -> None:
        """Do nothing: the pool closes what its workers hold."""


def why_inexact(state: Mapping[str, Any]) -> str:
    """Return why environments, below any wrappers, could not save themselves in this state; empty if they could."""
    while "inexact_because" not in state:
        state = state["envs"]
    return state["inexact_because"]
