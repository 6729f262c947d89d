"""Drawing actions at every step of collection, as many as there are environments.

Axes: A choices of an action or entries of a continuous one, B rows. A lies first, so that all reductions over it run
along whole rows.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
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
HEIGHTS = 64  # how many legal choices a row may have is rounded up to a multiple of this


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
    """Return quick draws for a head that has them: one choice, or real numbers."""
    if isinstance(head, Categorical):
        few = head.num_parameters <= FEW_CHOICES
        return ChoiceDraws(head.num_parameters) if few else ManyChoiceDraws(head)
    if isinstance(head, DiagonalGaussian):
        return GaussianDraws(head.action_shape)
    return None


class ChoiceDraws:
    """Draws choices by inverting the cumulative distribution.

    The rule is that of ``Categorical.sample``: a choice of probability exactly 0 is never drawn.
    """

    def __init__(self, num_choices: int) -> None:
        self._num_choices = num_choices
        self._rooms: dict[tuple[int, int], _ChoiceRoom] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy of a policy, or one in another process, starts with no memory of its own.
        return ChoiceDraws, (self._num_choices,)

    def draw(self, parameters: Tensor, mask: Tensor | None, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return choices and their log-probabilities; the next draw of as many rows overwrites both."""
        logits_AB = parameters.numpy().T
        room = _room(self._rooms, self._num_choices, logits_AB.shape[1])
        if mask is not None:
            room.shifted_AB.fill(-math.inf)
            np.copyto(room.shifted_AB, logits_AB, where=mask.numpy().T)
            logits_AB = room.shifted_AB
        room.draw(logits_AB, generator)
        return room.actions, room.log_probs


class ManyChoiceDraws:
    """Draws among the legal ones of many choices, and looks at no others: in a game they are a few out of thousands.

    Without a mask it is ``Categorical.sample``, and with one the rule is the same.
    """

    def __init__(self, head: Categorical) -> None:
        self._head = head
        self._rooms: dict[tuple[int, int], _ChoiceRoom] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return ManyChoiceDraws, (self._head,)

    def draw(self, parameters: Tensor, mask: Tensor | None, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return choices and their log-probabilities; the next draw of as many rows overwrites both."""
        if mask is None:
            with torch.no_grad():
                return self._head.sample(parameters, mask, generator)
        num_rows, num_choices = parameters.shape
        legal = np.flatnonzero(mask.numpy())
        rows, choices = np.divmod(legal, num_choices)
        counts_B = np.bincount(rows, minlength=num_rows)
        if not counts_B.all():
            self._head.check_mask(mask)
        ends_B = counts_B.cumsum()
        firsts_B = ends_B - counts_B
        # The legal choices of each row one below the other, in a room whose height does not change at every step.
        height = -(-int(counts_B.max()) // HEIGHTS) * HEIGHTS
        room = _room(self._rooms, height, num_rows)
        room.shifted_AB.fill(-math.inf)
        room.shifted_AB[np.arange(legal.size) - firsts_B[rows], rows] = parameters.numpy().take(legal)
        room.draw(room.shifted_AB, generator)
        room.actions_B[:] = choices[firsts_B + room.actions_B]
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

    def draw(self, logits_AB: NDArray[np.float32], generator: torch.Generator) -> None:
        """Write choices and their log-probabilities; the logits may lie in ``shifted_AB``."""
        shifted_AB, sums_AB, row_B = self.shifted_AB, self.sums_AB, self.row_B
        np.maximum.reduce(logits_AB, axis=0, out=row_B)
        np.subtract(logits_AB, row_B, shifted_AB)
        np.exp(shifted_AB, sums_AB)
        np.add.accumulate(sums_AB, axis=0, out=sums_AB)
        # The threshold lies above 0 and not above the total, and a choice is passed when the sum up to it lies below
        # the threshold: so a choice that adds exactly nothing is never stopped at.
        self.uniforms.uniform_(SMALLEST_UNIFORM, 1, generator=generator)
        np.multiply(self.uniforms_B, self.total_B, row_B)
        np.less(self.sums_but_last_AB, row_B, self.is_passed_AB)
        np.add.reduce(self.is_passed_AB, axis=0, dtype=np.int64, out=self.actions_B)
        np.multiply(self.actions_B, len(row_B), self.places_B)
        np.add(self.places_B, self.positions_B, self.places_B)
        self.shifted_flat.take(self.places_B, None, self.log_probs_B, "clip")
        np.log(self.total_B, row_B)
        np.subtract(self.log_probs_B, row_B, self.log_probs_B)


def _room(rooms: dict[tuple[int, int], _ChoiceRoom], num_choices: int, num_rows: int) -> _ChoiceRoom:
    """Return the room for so many choices and rows, made when first asked for."""
    room = rooms.get((num_choices, num_rows))
    if room is None:
        if len(rooms) >= MOST_KEPT:
            rooms.clear()
        room = rooms[num_choices, num_rows] = _ChoiceRoom(num_choices, num_rows)
    return room


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
