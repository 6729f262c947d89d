"""Optimisation: passes over the experience, minibatch by minibatch, each loss in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hookloop.core import Ranks, SingleProcess, TrainerState, TrainingLoop
from hookloop.rl.advantages import estimate_advantages
from hookloop.rl.experience import Experience
from hookloop.rl.losses.base import Loss, SharedLossData
from hookloop.rl.optimizer import FlatAdam
from hookloop.rl.policies import Policy
from hookloop.rl.sampling import Minibatch, Sampler

Plain = Any


class Learner:
    """Improves a policy on the collected experience.

    Args:
        policy: What learns.
        losses: What to minimise: the sum of those that are switched on.
        optimizer: How to step.
        sampler: How the experience is cut into minibatches.
        generator: The random stream of the sampling.
        update_epochs: Passes over the experience.
        gamma: The discount.
        gae_lambda: The decay of the advantage's sum.
        accumulate_minibatches: Minibatches per optimizer step.
        ranks: The learners of the run, which step along the mean of their gradients.
    """

    def __init__(
        self,
        policy: Policy,
        losses: Sequence[Loss],
        optimizer: FlatAdam,
        sampler: Sampler,
        *,
        generator: torch.Generator,
        update_epochs: int,
        gamma: float,
        gae_lambda: float,
        accumulate_minibatches: int = 1,
        ranks: Ranks | None = None,
    ) -> None:
        self.ranks: Ranks = SingleProcess() if ranks is None else ranks
        self.policy = policy
        self.losses = list(losses)
        self.optimizer = optimizer
        self.sampler = sampler
        self.generator = generator
        self.update_epochs = update_epochs
        self.gamma = gamma
        self.gae_lambda = gae_lambda
        self.accumulate_minibatches = accumulate_minibatches
        self._waiting = 0  # minibatches whose gradients have not been stepped along yet
        self._waiting_loss: Tensor | None = None
        self._have_agreed_to_end = False

    def estimate(self, experience: Experience, last_values: Tensor) -> None:
        """Write advantages and returns into the experience."""
        arrays, steps = experience.arrays, experience.steps
        advantages = arrays["advantages"][:steps]
        estimate_advantages(
            arrays["rewards"][:steps],
            arrays["values"][:steps],
            last_values.numpy(),
            experience.ends(),
            arrays["bootstraps"][:steps],
            gamma=self.gamma,
            gae_lambda=self.gae_lambda,
            out_TN=advantages,
        )
        np.add(advantages, arrays["values"][:steps], out=arrays["returns"][:steps])

    def learn(
        self, loop: TrainingLoop, *, has_fillers: bool, states: Callable[[Tensor], Any] | None
    ) -> dict[str, float]:
        """Optimise on what was collected and return the mean statistics of every loss."""
        with loop.train_phase():
            for _ in range(self.update_epochs):
                if self._is_over(loop.state):
                    break
                for minibatch in self.sampler.passes(self.generator, has_fillers=has_fillers, states=states):
                    self._train_on(minibatch, loop)
                    if self._is_over(loop.state, within_pass=True):
                        break
                self._step_if_waiting(loop)
                loop.update_epoch_done()
                for loss in self.losses:
                    loss.end_pass(loop.state)
        return {f"{loss.name}/{name}": value for loss in self.losses for name, value in loss.statistics.means().items()}

    def state_dict(self) -> dict[str, Plain]:
        """Return weights, optimizer, random stream and losses; the tensors are the live ones."""
        return {
            "policy": dict(self.policy.state_dict()),
            "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(),
            "losses": {loss.name: loss.state_dict() for loss in self.losses},
        }

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on from a saved state."""
        self.policy.load_state_dict(saved["policy"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.generator.set_state(saved["generator"])
        for loss in self.losses:
            loss.load_state_dict(saved["losses"][loss.name])

    def _train_on(self, minibatch: Minibatch, loop: TrainingLoop) -> None:
        loop.minibatch_start(minibatch)
        total = self._differentiate(minibatch, loop.state)
        # With all losses switched off there is nothing to differentiate: the step is skipped, not crashed into.
        total = None if total is None else total.detach()
        if total is not None:
            self._waiting_loss = total if self._waiting_loss is None else self._waiting_loss + total
            self._waiting += 1
            if self._waiting == self.accumulate_minibatches:
                self._step_if_waiting(loop)
        loop.minibatch_end(total)

    def _differentiate(self, minibatch: Minibatch, state: TrainerState) -> Tensor | None:
        """Write or add the gradients of the sum of all losses; return the sum, None if all are switched off."""
        if len(self.losses) == 1 and self.accumulate_minibatches == 1 and self.losses[0].is_training(state):
            by_hand = self.losses[0].train_by_hand(self.policy, minibatch, state)
            if by_hand is not None:
                return by_hand
        shared = SharedLossData(self.policy, minibatch)
        total: Tensor | None = None
        for loss in self.losses:
            part = loss.train(shared, state)
            if part.requires_grad:
                total = part if total is None else total + part
        if total is not None:
            total = total / self.accumulate_minibatches if self.accumulate_minibatches > 1 else total
            total.backward()
        return total

    def _step_if_waiting(self, loop: TrainingLoop) -> None:
        if not self._waiting:
            return
        loss, self._waiting, self._waiting_loss = self._waiting_loss, 0, None
        try:
            if self.ranks.world_size > 1:
                loss = self._average(loss, loop.state)
            if loop.gradients(loss):
                self.optimizer.clip()
                self.optimizer.step()
                loop.optimizer_step()
        finally:
            self.optimizer.zero_grad()  # also when a hook has stopped the run here: another may follow

    def _average(self, loss: Tensor | None, state: TrainerState) -> Tensor:
        """Replace gradients and loss by their means over all ranks; whether one wants to end the phase goes along."""
        wire = self.optimizer.wire
        wire[-2] = 0.0 if loss is None else loss
        wire[-1] = float(state.stop_update_epoch)
        self.ranks.average(wire)
        self._have_agreed_to_end = state.stop_update_epoch = bool(wire[-1] > 0)
        return wire[-2].clone()

    def _is_over(self, state: TrainerState, *, within_pass: bool = False) -> bool:
        """Tell whether to end the optimisation of this epoch; every rank is told the same.

        Within a pass it is what the ranks have told each other with their gradients; before one, they are asked.
        """
        if self.ranks.world_size == 1:
            return state.stop_update_epoch
        if not within_pass:
            self._have_agreed_to_end = state.stop_update_epoch = any(self.ranks.gather(state.stop_update_epoch))
        return self._have_agreed_to_end
