"""Action masks, from the two places where Gymnasium's environments put them: the info, or a dict observation."""

from __future__ import annotations

from typing import Any

import numpy as np

from hookloop.rl.envs.errors import EnvMismatchError
from hookloop.rl.envs.gymnasium_envs.spaces import MASK_KEY
from hookloop.rl.specs import ActionSpec, Array, ContinuousActions


class MaskReader:
    """Reads the masks of N environments into one array; where none is given, every action is allowed.

    Args:
        is_observed: Whether the mask is a part of the observation, and not of the info.
    """

    def __init__(self, *, num_envs: int, num_choices: int, is_observed: bool, who: str) -> None:
        self.masks = np.ones((num_envs, num_choices), dtype=bool)
        self._is_observed, self._who = is_observed, who
        self._everywhere = np.ones(num_envs, dtype=bool)

    def read_row(self, index: int, observation: Any, info: dict[str, Any]) -> None:
        """Take the mask of one environment."""
        given = observation[MASK_KEY] if self._is_observed else info.get(MASK_KEY)
        self.masks[index] = True if given is None else self._as_row(index, given)

    def read_batch(self, observations: Any, infos: dict[str, Any], rows: Array | None = None) -> None:
        """Take the masks of all environments, or of those that ``rows`` marks."""
        where: Array = self._everywhere if rows is None else rows
        self.masks[where] = True
        given = observations[MASK_KEY] if self._is_observed else infos.get(MASK_KEY)
        if given is None:
            return
        # Gymnasium puts beside each key of the infos which environments gave it; the others have zeros.
        told = None if self._is_observed else infos.get(f"_{MASK_KEY}")
        if told is not None:
            where = np.logical_and(where, told)
        if isinstance(given, np.ndarray) and given.shape == self.masks.shape:
            np.copyto(self.masks, given != 0, where=where[:, np.newaxis])
            return
        for index in np.flatnonzero(where).tolist():
            row = tuple(part[index] for part in given) if isinstance(given, tuple) else given[index]
            self.masks[index] = self._as_row(index, row)

    def check(self) -> None:
        """Refuse a mask that leaves nothing to choose."""
        blocked = np.flatnonzero(~self.masks.any(axis=1))
        if blocked.size:
            raise EnvMismatchError(
                f"{self._who} (environment {blocked[0]}) gave an action mask that allows no action at all. "
                "Allow at least one, or end the episode."
            )

    def _as_row(self, index: int, given: object) -> Array:
        """Return a mask as bools; a tuple of masks, one for each of several choices, is joined."""
        row = np.concatenate([np.ravel(part) for part in given]) if isinstance(given, tuple) else np.asarray(given)
        expected = self.masks.shape[1:]
        if row.shape != expected:
            raise EnvMismatchError(
                f"{self._who} (environment {index}) gave an action mask of shape {row.shape}, expected {expected}: "
                "one entry for each choice."
            )
        return row != 0


def mask_reader(
    action: ActionSpec, *, num_envs: int, is_observed: bool, first_infos: dict[str, Any], who: str
) -> MaskReader | None:
    """Return a reader if there are masks to read, which the observation space or the first reset tells."""
    if isinstance(action, ContinuousActions) or not (is_observed or MASK_KEY in first_infos):
        return None
    return MaskReader(num_envs=num_envs, num_choices=action.num_choices, is_observed=is_observed, who=who)


def refuse_late_mask(action: ActionSpec, infos: dict[str, Any], who: str) -> None:
    """Refuse a mask in the info of a step if the reset gave none: nobody would look at it."""
    if MASK_KEY in infos and not isinstance(action, ContinuousActions):
        raise EnvMismatchError(
            f"{who} gave an action mask in step() but none in reset(). Return it from both: the buffers for it are "
            "made before the first step."
        )
