"""Group-relative policy optimisation."""

from __future__ import annotations

import torch
from torch import Tensor

from hookloop.core import Schedule
from hookloop.core.state import TrainerState
from hookloop.errors import ConfigError
from hookloop.sequences.experience import SequenceMinibatch, Sequences
from hookloop.sequences.losses.base import SequenceLoss, mean_over_drawn, unequal_groups

STATISTICS = ("policy", "kl", "clip_fraction", "approx_kl")


class GRPO(SequenceLoss):
    """The clipped surrogate of each symbol, with advantages that are normalised within a group.

    Args:
        clip: How far the ratio of probabilities may move from 1.
        kl_coefficient: The weight of the distance to the reference; 0 does without a reference.
        normalise_deviation: Divide by the deviation of a group's rewards; else only their mean is taken away.
        skip_equal_groups: Leave groups out in which all rewards are alike; only the distance is left of them.
    """

    def __init__(
        self,
        *,
        clip: float = 0.2,
        kl_coefficient: float = 0.0,
        normalise_deviation: bool = True,
        skip_equal_groups: bool = True,
        name: str | None = None,
        train_schedule: Schedule | str | None = None,
    ) -> None:
        super().__init__(name=name, train_schedule=train_schedule)
        if not clip > 0:
            raise ConfigError(f"GRPO's clip must be above 0, got {clip}; 0.2 is usual.")
        if kl_coefficient < 0:
            raise ConfigError(f"GRPO's kl_coefficient must be 0 or more, got {kl_coefficient}.")
        self.clip = clip
        self.kl_coefficient = kl_coefficient
        self.normalise_deviation = normalise_deviation
        self.skip_equal_groups = skip_equal_groups

    @property
    def needs_reference(self) -> bool:
        """Whether the distance to a reference counts."""
        return self.kl_coefficient > 0

    def groups(self, sequences: Sequences) -> Tensor:
        """Return the groups whose rewards differ, or all."""
        return unequal_groups(sequences.rewards) if self.skip_equal_groups else super().groups(sequences)

    def advantages(self, rewards_GK: Tensor) -> Tensor:
        """Return rewards minus the mean of their group, by its deviation."""
        deviation_G1, mean_G1 = torch.std_mean(rewards_GK, dim=1, keepdim=True)
        centred = rewards_GK - mean_G1
        return centred / (deviation_G1 + 1e-6) if self.normalise_deviation else centred

    def run_train(self, minibatch: SequenceMinibatch, trainer_state: TrainerState) -> Tensor:
        """Return the mean over completions of the mean over their symbols."""
        now_RT, mask_RT = minibatch.log_probs, minibatch.mask
        change_RT = now_RT - minibatch.old_log_probs
        ratio_RT = change_RT.exp()
        advantages_R1 = minibatch.advantages_of(self.name)[:, None]
        clipped_RT = ratio_RT.clamp(1 - self.clip, 1 + self.clip)
        policy_RT = -torch.minimum(ratio_RT * advantages_R1, clipped_RT * advantages_R1)
        policy = minibatch.mean(mean_over_drawn(policy_RT, mask_RT))
        kl = torch.zeros(())
        if self.needs_reference:
            kl = minibatch.mean(mean_over_drawn(distance_estimate(now_RT, minibatch.reference), mask_RT))
        with torch.no_grad():
            is_clipped = minibatch.mean(mean_over_drawn(((ratio_RT - 1).abs() > self.clip).float(), mask_RT))
            approx_kl = minibatch.mean(mean_over_drawn(ratio_RT - 1 - change_RT, mask_RT))
            self.statistics.add(STATISTICS, torch.stack([policy.detach(), kl.detach(), is_clipped, approx_kl]))
        return policy + self.kl_coefficient * kl if self.needs_reference else policy


def distance_estimate(log_probs: Tensor, reference: Tensor) -> Tensor:
    """Return an unbiased estimate of KL(now || reference) from single draws that is never below 0.

    It is r - 1 - log r, with r the reference's probability by the one now.
    """
    difference = reference - log_probs
    return difference.exp() - 1 - difference
