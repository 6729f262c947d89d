"""What a loss of sequences is: it says which groups it learns from, and turns minibatches into a number to minimise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from hookloop.core import Schedule
from hookloop.core.state import TrainerState
from hookloop.rl.losses.base import Gate, Statistics
from hookloop.sequences.experience import SequenceMinibatch, Sequences

Plain = Any


class SequenceLoss:
    """Something to minimise. Override ``run_train``; the rest is optional.

    Args:
        name: Under which its state, statistics and settings are found; the class's name in lower case by default.
        train_schedule: When it takes part in training: spans of epochs or other clocks, such as ``from 10 epochs``;
            None for always.
    """

    needs_examples: ClassVar[bool] = False
    """Whether it learns from right answers, and not from what was drawn."""

    def __init__(self, *, name: str | None = None, train_schedule: Schedule | str | None = None) -> None:
        self.name = name or type(self).__name__.lower()
        self.train_gate = Gate(train_schedule, f"{self.name}.train_schedule")
        self.statistics = Statistics()

    @property
    def needs_reference(self) -> bool:
        """Whether it compares with the log-probabilities of a reference."""
        return False

    def is_training(self, trainer_state: TrainerState) -> bool:
        """Tell whether the schedule lets it train now."""
        return self.train_gate.is_open(trainer_state)

    def groups(self, sequences: Sequences) -> Tensor:
        """Return which groups [G] it has something to learn from; all by default."""
        return torch.ones(len(sequences.rewards), dtype=torch.bool)

    def advantages(self, rewards_GK: Tensor) -> Tensor:
        """Return what each completion is worth compared with the others of its group; by default just its reward."""
        return rewards_GK

    def train(self, minibatch: SequenceMinibatch, trainer_state: TrainerState) -> Tensor:
        """Return the loss of a minibatch, or a zero without gradient: the schedule says no, or nothing was drawn."""
        has_rows = self.needs_examples or len(minibatch.drawn_groups) > 0
        is_due = has_rows and self.is_training(trainer_state)
        return self.run_train(minibatch, trainer_state) if is_due else torch.zeros(())

    def run_train(self, minibatch: SequenceMinibatch, trainer_state: TrainerState) -> Tensor:
        """Return the loss of a minibatch: a mean over its groups."""
        raise NotImplementedError(f"{type(self).__name__} needs run_train(self, minibatch, trainer_state).")

    def state_dict(self) -> dict[str, Plain]:
        """Return what must survive a resume; nothing by default."""
        return {}

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Restore what ``state_dict`` returned."""


def unequal_groups(rewards_GK: Tensor) -> Tensor:
    """Return in which groups [G] the rewards differ: where all are alike, no completion is better than another."""
    return (rewards_GK != rewards_GK[:, :1]).any(dim=1)


def mean_over_drawn(values_RT: Tensor, mask_RT: Tensor) -> Tensor:
    """Return the mean of each row [R] over the symbols that were drawn in it."""
    return (values_RT * mask_RT).sum(dim=1) / mask_RT.sum(dim=1).clamp(min=1)
