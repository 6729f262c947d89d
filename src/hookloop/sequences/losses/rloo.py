"""REINFORCE with a baseline that leaves one out."""

from __future__ import annotations

import torch
from torch import Tensor

from hookloop.core import Schedule
from hookloop.core.state import TrainerState
from hookloop.sequences.experience import SequenceMinibatch, Sequences
from hookloop.sequences.losses.base import SequenceLoss, unequal_groups


class RLOO(SequenceLoss):
    """The log-probability of each completion, weighted by its reward minus the mean of the others of its group.

    The gradient is that of the expected reward as long as the weights are those that drew: one pass, one minibatch.

    Args:
        skip_equal_groups: Leave groups out in which all rewards are alike; they teach nothing.
    """

    def __init__(
        self,
        *,
        skip_equal_groups: bool = True,
        name: str | None = None,
        train_schedule: Schedule | str | None = None,
    ) -> None:
        super().__init__(name=name, train_schedule=train_schedule)
        self.skip_equal_groups = skip_equal_groups

    def groups(self, sequences: Sequences) -> Tensor:
        """Return the groups whose rewards differ, or all."""
        return unequal_groups(sequences.rewards) if self.skip_equal_groups else super().groups(sequences)

    def advantages(self, rewards_GK: Tensor) -> Tensor:
        """Return each reward minus the mean of the others."""
        size = rewards_GK.shape[1]
        return (rewards_GK - rewards_GK.mean(dim=1, keepdim=True)) * (size / (size - 1))

    def run_train(self, minibatch: SequenceMinibatch, trainer_state: TrainerState) -> Tensor:
        """Return minus the mean of advantage times log-probability of the whole completion."""
        advantages_R = minibatch.advantages_of(self.name)
        loss = -minibatch.mean(advantages_R * minibatch.log_probs.sum(dim=1))
        self.statistics.add(("policy", "advantage"), torch.stack([loss.detach(), minibatch.mean(advantages_R.abs())]))
        return loss
