"""Drawing actions at every step of collection, as many as there are environments.

Axes: A choices of an action or entries of a continuous one, B rows. A lies first, so that all reductions over it run
along whole rows.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from hookloop.rl.actions import (
    FEW_CHOICES,
    HALF_LOG_TWO_PI,
    MASKED_GAUSSIAN,
    SMALLEST_UNIFORM,
    ActionHead,
    Categorical,
    DiagonalGaussian,
    MaskError,
)

MOST_KEPT = 16


class Draws(Protocol):
    """Quick draws of actions, in numpy and in memory kept per number of rows.

    For a few rows a numpy call costs a third of a torch call, and a draw is nothing but calls.
    """

    def draw(self, parameters: Tensor, mask: Tensor | None, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return actions and their log-probabilities; the next draw of as many rows overwrites both.

        The parameters are float32, on the CPU, and outside autograd.
        """
        ...


def draws_for(head: ActionHead) -> Draws | None:
    """Return quick draws for a head that has them: one choice out of a few, or real numbers."""
    if isinstance(head, Categorical) and head.num_parameters <= FEW_CHOICES:
        return ChoiceDraws(head.num_parameters)
    if isinstance(head, DiagonalGaussian):
        return GaussianDraws(head.action_shape)
    return None


class ChoiceDraws:
    """Draws choices by inverting the cumulative distribution.

    The rule is that of ``Categorical.sample``: a choice of probability exactly 0 is never drawn.
    """

    def __init__(self, num_choices: int) -> None:
        self._num_choices = num_choices
        self._rooms: dict[int, _ChoiceRoom] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy of a policy, or one in another process, starts with no memory of its own.
        return ChoiceDraws, (self._num_choices,)

    def draw(self, parameters: Tensor, mask: Tensor | None, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return choices and their log-probabilities; the next draw of as many rows overwrites both."""
        logits_AB = parameters.numpy().T
        num_rows = logits_AB.shape[1]
        room = self._rooms.get(num_rows)
        if room is None:
            if len(self._rooms) >= MOST_KEPT:
                self._rooms.clear()
            room = self._rooms[num_rows] = _ChoiceRoom(self._num_choices, num_rows)
        shifted_AB, sums_AB, row_B = room.shifted_AB, room.sums_AB, room.row_B
        if mask is not None:
            shifted_AB.fill(-math.inf)
            np.copyto(shifted_AB, logits_AB, where=mask.numpy().T)
            logits_AB = shifted_AB
        np.maximum.reduce(logits_AB, axis=0, out=row_B)
        np.subtract(logits_AB, row_B, shifted_AB)
        np.exp(shifted_AB, sums_AB)
        np.add.accumulate(sums_AB, axis=0, out=sums_AB)
        # The threshold lies above 0 and not above the total, and a choice is passed when the sum up to it lies below
        # the threshold: so a choice that adds exactly nothing is never stopped at.
        room.uniforms.uniform_(SMALLEST_UNIFORM, 1, generator=generator)
        np.multiply(room.uniforms_B, room.total_B, row_B)
        np.less(room.sums_but_last_AB, row_B, room.is_passed_AB)
        np.add.reduce(room.is_passed_AB, axis=0, dtype=np.int64, out=room.actions_B)
        np.multiply(room.actions_B, num_rows, room.places_B)
        np.add(room.places_B, room.positions_B, room.places_B)
        room.shifted_flat.take(room.places_B, None, room.log_probs_B, "clip")
        np.log(room.total_B, row_B)
        np.subtract(room.log_probs_B, row_B, room.log_probs_B)
        return room.actions, room.log_probs


class GaussianDraws:
    """Draws normally distributed numbers."""

    def __init__(self, action_shape: tuple[int, ...]) -> None:
        self._action_shape = action_shape
        self._size = math.prod(action_shape)
        self._rooms: dict[int, _GaussianRoom] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return GaussianDraws, (self._action_shape,)

    def draw(self, parameters: Tensor, mask: Tensor | None, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return actions and their log-probabilities; the next draw of as many rows overwrites both."""
        if mask is not None:
            raise MaskError(MASKED_GAUSSIAN)
        both_AB = parameters.numpy().T
        means_AB, logs_AB = both_AB[: self._size], both_AB[self._size : 2 * self._size]
        num_rows = both_AB.shape[1]
        room = self._rooms.get(num_rows)
        if room is None:
            if len(self._rooms) >= MOST_KEPT:
                self._rooms.clear()
            room = self._rooms[num_rows] = _GaussianRoom(self._action_shape, num_rows)
        noise_AB, actions_AB, log_probs_B = room.noise_AB, room.actions_AB, room.log_probs_B
        room.noise.normal_(generator=generator)
        np.exp(logs_AB, actions_AB)
        np.multiply(actions_AB, noise_AB, actions_AB)
        np.add(actions_AB, means_AB, actions_AB)
        np.multiply(noise_AB, noise_AB, noise_AB)
        np.multiply(noise_AB, -0.5, noise_AB)
        np.subtract(noise_AB, logs_AB, noise_AB)
        np.add.reduce(noise_AB, axis=0, out=log_probs_B)
        np.subtract(log_probs_B, self._size * HALF_LOG_TWO_PI, log_probs_B)
        return room.actions, room.log_probs


class _ChoiceRoom:
    """The memory of draws for one number of rows."""

    def __init__(self, num_choices: int, num_rows: int) -> None:
        self.shifted_AB = np.empty((num_choices, num_rows), np.float32)
        self.shifted_flat = self.shifted_AB.reshape(-1)
        self.sums_AB = np.empty((num_choices, num_rows), np.float32)
        self.sums_but_last_AB, self.total_B = self.sums_AB[:-1], self.sums_AB[-1]
        self.is_passed_AB = np.empty((num_choices - 1, num_rows), np.bool_)
        self.row_B = np.empty(num_rows, np.float32)
        self.places_B = np.empty(num_rows, np.int64)
        self.positions_B = np.arange(num_rows)
        # What is made in inference mode may not be written to outside of it.
        with torch.inference_mode(False):
            self.uniforms = torch.empty(num_rows)
            self.actions = torch.empty(num_rows, dtype=torch.int64)
            self.log_probs = torch.empty(num_rows)
        self.uniforms_B = self.uniforms.numpy()
        self.actions_B = self.actions.numpy()
        self.log_probs_B = self.log_probs.numpy()


class _GaussianRoom:
    """The memory of draws for one number of rows."""

    def __init__(self, action_shape: tuple[int, ...], num_rows: int) -> None:
        size = math.prod(action_shape)
        with torch.inference_mode(False):
            self.noise = torch.empty(size, num_rows)
            actions = torch.empty(size, num_rows)
            self.actions = actions.view(*action_shape, num_rows).movedim(-1, 0)
            self.log_probs = torch.empty(num_rows)
        self.noise_AB, self.actions_AB, self.log_probs_B = self.noise.numpy(), actions.numpy(), self.log_probs.numpy()
