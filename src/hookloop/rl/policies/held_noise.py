"""Noise that is held: the same function of the features for several steps, one per environment.

Axes: B environments, H features, A entries of an action.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hookloop.errors import ConfigError
from hookloop.rl.actions import HALF_LOG_TWO_PI, MASKED_GAUSSIAN, MaskError, StateDependentGaussian

Plain = Any


class HeldNoise:
    """One matrix of normal numbers per environment, drawn anew every few steps, that turns features into noise.

    Whoever acts step by step owns it: ``begin`` at the start of a rollout, then ``Policy.act(..., noise=noise)``.

    Args:
        head: What the actions are and how they are scored.
        log_deviations_HA: Of the matrices' entries; here only for the dtype and the device.
        num_envs: How many matrices.
        resample_steps: How many steps a matrix lasts; None lasts until the next ``begin``.
    """

    def __init__(
        self,
        head: StateDependentGaussian,
        log_deviations_HA: Tensor,
        *,
        num_envs: int,
        resample_steps: int | None = None,
    ) -> None:
        self._head = head
        self._num_envs = num_envs
        self._resample_steps = resample_steps
        self._steps_held: int | None = None
        # What is made in inference mode may not be written to outside of it.
        with torch.inference_mode(False), torch.no_grad():
            self._matrices_AHB = log_deviations_HA.new_zeros(head.size, head.num_features, num_envs)
            self._deviations_AH1 = log_deviations_HA.new_empty(head.size, head.num_features, 1)
        is_quick = log_deviations_HA.is_cpu and log_deviations_HA.dtype is torch.float32
        self._room = _Room(head, self._matrices_AHB) if is_quick else None

    def begin(self) -> None:
        """Forget the matrices: the next actions get new ones."""
        self._steps_held = None

    def draw(
        self, parameters: Tensor, log_deviations_HA: Tensor, mask: Tensor | None, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Return actions and their log-probabilities, which the next draw may overwrite; autograd must be off."""
        if mask is not None:
            raise MaskError(MASKED_GAUSSIAN)
        if parameters.shape[0] != self._num_envs:
            raise ConfigError(
                f"This noise is held for {self._num_envs} environments, got observations of {parameters.shape[0]}; "
                "make one with policy.held_noise(num_envs), or act without noise=, which draws each action anew."
            )
        if self._steps_held is None or self._steps_held == self._resample_steps:
            self._resample(log_deviations_HA, generator)
            self._steps_held = 0
        self._steps_held += 1
        return self._add(parameters) if self._room is None else self._room.add(parameters)

    def state_dict(self) -> dict[str, Plain]:
        """Return the matrices and how long they have been held."""
        return {"matrices": self._matrices_AHB.clone(), "steps_held": self._steps_held}

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on with the same matrices for the rest of their time."""
        self._matrices_AHB.copy_(saved["matrices"])
        self._steps_held = saved["steps_held"]

    def _resample(self, log_deviations_HA: Tensor, generator: torch.Generator) -> None:
        torch.exp(log_deviations_HA.detach().t().unsqueeze(2), out=self._deviations_AH1)
        self._matrices_AHB.normal_(generator=generator).mul_(self._deviations_AH1)

    def _add(self, parameters: Tensor) -> tuple[Tensor, Tensor]:
        head = self._head
        noise_BA = (self._matrices_AHB * parameters[:, 2 * head.size :].t()).sum(1).t()
        actions = (parameters[:, : head.size] + noise_BA).view(-1, *head.action_shape).to(head.action_dtype)
        return actions, head.score(parameters, actions).log_probs


class _Room:
    """The memory of draws on the CPU, where a numpy call costs a third of a torch call."""

    def __init__(self, head: StateDependentGaussian, matrices_AHB: Tensor) -> None:
        size, num_features, num_envs = matrices_AHB.shape
        self._size = size
        self._constant = size * HALF_LOG_TWO_PI
        with torch.inference_mode(False):
            actions = torch.empty(size, num_envs)
            self.actions = actions.view(*head.action_shape, num_envs).movedim(-1, 0)
            self.log_probs = torch.empty(num_envs)
        self._matrices_AHB, self._actions_AB = matrices_AHB.numpy(), actions.numpy()
        self._log_probs_B = self.log_probs.numpy()
        self._products_AHB = np.empty((size, num_features, num_envs), np.float32)
        self._noise_AB = np.empty((size, num_envs), np.float32)
        self._scores_AB = np.empty((size, num_envs), np.float32)

    def add(self, parameters: Tensor) -> tuple[Tensor, Tensor]:
        """Return the means with noise, and their log-probabilities; the next call overwrites both."""
        all_PB = parameters.numpy().T
        means_AB, logs_AB = all_PB[: self._size], all_PB[self._size : 2 * self._size]
        noise_AB, scores_AB = self._noise_AB, self._scores_AB
        np.multiply(self._matrices_AHB, all_PB[2 * self._size :], self._products_AHB)
        np.add.reduce(self._products_AHB, axis=1, out=noise_AB)
        np.add(means_AB, noise_AB, self._actions_AB)
        np.negative(logs_AB, scores_AB)
        np.exp(scores_AB, scores_AB)
        np.multiply(scores_AB, noise_AB, scores_AB)
        np.multiply(scores_AB, scores_AB, scores_AB)
        np.multiply(scores_AB, -0.5, scores_AB)
        np.subtract(scores_AB, logs_AB, scores_AB)
        np.add.reduce(scores_AB, axis=0, out=self._log_probs_B)
        np.subtract(self._log_probs_B, self._constant, self._log_probs_B)
        return self.actions, self.log_probs
