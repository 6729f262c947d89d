"""Right answers, where a lesson knows them: how a model that has nothing to be rewarded for gets a start."""

from __future__ import annotations

import torch
from torch import Tensor

from hookloop.core import Schedule
from hookloop.core.state import TrainerState
from hookloop.errors import ConfigError
from hookloop.sequences.experience import SequenceMinibatch, Sequences, token_log_probs
from hookloop.sequences.losses.base import SequenceLoss, mean_over_drawn


class Imitation(SequenceLoss):
    """Learns the right answers to prompts, by default to those that no completion of the group was rewarded for.

    A lesson that has just opened is shown this way until its answers begin to be found; rewards teach the rest.

    Args:
        coefficient: Its weight.
        only_failed: Leave groups out in which any completion has a reward above 0.
    """

    needs_examples = True

    def __init__(
        self,
        *,
        coefficient: float = 1.0,
        only_failed: bool = True,
        name: str | None = None,
        train_schedule: Schedule | str | None = None,
    ) -> None:
        super().__init__(name=name, train_schedule=train_schedule)
        if coefficient < 0:
            raise ConfigError(f"Imitation's coefficient must be 0 or more, got {coefficient}.")
        self.coefficient = coefficient
        self.only_failed = only_failed

    def groups(self, sequences: Sequences) -> Tensor:
        """Return the groups that nobody was rewarded in and whose answer is known."""
        assert sequences.example_mask is not None, "examples are asked for while a loss needs them"
        is_known = sequences.example_mask.any(dim=1)
        return is_known & ~(sequences.rewards > 0).any(dim=1) if self.only_failed else is_known

    def run_train(self, minibatch: SequenceMinibatch, trainer_state: TrainerState) -> Tensor:
        """Return minus the mean log-probability of the symbols of right answers."""
        sequences = minibatch.sequences
        assert sequences.example_tokens is not None
        assert sequences.example_mask is not None
        wanted = minibatch.groups[self.groups(sequences)[minibatch.groups]]
        if not len(wanted):
            return torch.zeros(())
        mask_ET = sequences.example_mask[wanted]
        found_ET = token_log_probs(minibatch.model, sequences.example_tokens[wanted], mask_ET)
        loss = -mean_over_drawn(found_ET, mask_ET).sum() / len(minibatch.groups)
        share = len(wanted) / len(minibatch.groups)
        self.statistics.add(("answer", "share"), torch.stack([loss.detach(), torch.tensor(share)]))
        return self.coefficient * loss
