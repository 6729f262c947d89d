"""The face of environments: what collectors, wrappers and checks may rely on, whoever simulates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from hookloop.rl.envs.infos import NO_INFO
from hookloop.rl.specs import ActionSpec, Array, Observations, ObservationSpec

Exactness: TypeAlias = Literal["bit-exact", "learner-exact"]
"""What a resume promises: the same bits, or the same learner in environments that begin new episodes."""

EnvState: TypeAlias = dict[str, Any]
"""Plain data: finite numbers, texts, None, lists, dicts with text keys, and numpy arrays of numbers."""


class Episode(NamedTuple):
    """One finished episode; its return is the sum of the rewards the environment gave, whatever was normalised."""

    env_index: int
    return_: float
    length: int
    infos: Mapping[str, float] = NO_INFO
    """The numbers that the environment told at the end, such as ``success``."""


class Envs(Protocol):
    """N environments that step together and write their results into arrays that are allocated once.

    Each call of ``reset`` and ``step`` overwrites the arrays; whoever wants to keep a row copies it. An
    environment whose episode ended is reset by the adapter, in one of two ways::

        step t     a transition: ``rewards``, ``terminated``, ``truncated``; ``final_obs`` is where it led to
                   obs is the first observation of the next episode         has_fillers is False
        step t     a transition, as above
                   obs is still the last observation of the old episode     has_fillers is True
        step t+1   a filler: ``valid`` is False, the action was ignored, obs is the first of the next episode

    When an environment sets both flags on one step, the end is real: ``terminated`` stays, ``truncated`` is cleared.
    """

    @property
    def num_envs(self) -> int:
        """N."""
        ...

    @property
    def observation(self) -> ObservationSpec:
        """What one environment's observation is made of."""
        ...

    @property
    def action(self) -> ActionSpec:
        """What one environment's action is."""
        ...

    @property
    def obs(self) -> Observations:
        """What to act on next: [N, ...] or a dict of such arrays."""
        ...

    @property
    def final_obs(self) -> Observations:
        """The true last observations; meaningful only in rows whose episode ended on this step."""
        ...

    @property
    def rewards(self) -> Array:
        """float32 [N]."""
        ...

    @property
    def terminated(self) -> Array:
        """bool [N]: the episode ended for good; nothing comes after."""
        ...

    @property
    def truncated(self) -> Array:
        """bool [N]: the episode was cut off; ``final_obs`` still has a value."""
        ...

    @property
    def valid(self) -> Array:
        """bool [N]: False marks a filler, which is no transition and must not be learned from."""
        ...

    @property
    def has_fillers(self) -> bool:
        """Whether ``valid`` can ever be False."""
        ...

    @property
    def action_masks(self) -> Array | None:
        """bool [N, A]: which actions may be chosen next; None, from the start and for good, if there are no masks."""
        ...

    @property
    def finished(self) -> list[Episode]:
        """The episodes that ended on this step; a new list each time."""
        ...

    @property
    def episode_returns(self) -> Array:
        """float64 [N]: the sum of rewards so far of the episodes that are still running."""
        ...

    @property
    def episode_lengths(self) -> Array:
        """int64 [N]: the steps so far of the episodes that are still running; 0 wherever one is about to begin."""
        ...

    @property
    def num_double_ends(self) -> int:
        """How often, since the last reset, an environment set both flags on one step."""
        ...

    @property
    def exactness(self) -> Exactness:
        """What a resume from ``state_dict()`` promises, as things stand now."""
        ...

    @property
    def inexact_because(self) -> str:
        """Why the environments cannot save themselves; empty if they can."""
        ...

    def reset(self, seed: int) -> None:
        """Begin new episodes everywhere; the same seed gives the same episodes."""
        ...

    def step(self, actions: Array) -> None:
        """Act once in every environment; actions are int64 or float32, [N, ...] as ``action`` says."""
        ...

    def check_next_steps(self, count: int) -> None:
        """Check the results of the next ``count`` steps in full; a reset asks for two by itself."""
        ...

    def state_dict(self) -> EnvState:
        """Return plain data from which ``load_state_dict`` goes on, with the same bits if ``exactness`` says so."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state, in environments made the same way; learner-exact ones begin new episodes."""
        ...

    def close(self) -> None:
        """Release what the environments hold; a second call does nothing."""
        ...


class SavesItself(Protocol):
    """An environment, of any library, that knows best what it is made of.

    ``get_state`` returns plain data (and arrays) that is all ``set_state`` needs to go on with the same bits. The
    generators of numpy found in the environment's attributes are saved beside it, so it may leave those out.
    """

    def get_state(self) -> EnvState:
        """Return everything that changes while the environment runs."""
        ...

    def set_state(self, state: EnvState) -> None:
        """Go on from what ``get_state`` returned."""
        ...
