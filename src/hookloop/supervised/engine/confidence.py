"""How sure a model is of its answers, and whether it is right to be.

Legend: ``N`` answers, ``C`` classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from hookloop.errors import ConfigError

BINS = 15


@dataclass(frozen=True, slots=True)
class Confidence:
    """Means over answers."""

    top1: float
    """The probability of the likeliest class."""
    top5: float
    """The probability of the five likeliest together."""
    entropy: float
    """How spread the probabilities are, in nats: 0 is certainty."""
    calibration_error: float
    """How far confidence and accuracy are apart: 0 if of all answers given with 80 % four in five are right."""


def confidence_of(scores_NC: Tensor, targets_N: Tensor, bins: int = BINS) -> Confidence:
    """Measure the confidence of answers.

    Args:
        scores_NC: The scores of the classes, before softmax.
        targets_N: The right classes.
        bins: Parts of equal width into which the answers are grouped by confidence, for the calibration error.
    """
    if scores_NC.dim() != 2 or targets_N.shape != scores_NC.shape[:1] or not len(targets_N):
        raise ConfigError(
            "Confidence needs scores of the shape [N, C] and N right classes, at least one, got the shapes "
            f"{list(scores_NC.shape)} and {list(targets_N.shape)}."
        )
    log_probabilities_NC = torch.log_softmax(scores_NC.detach().double(), dim=-1)
    probabilities_NC = log_probabilities_NC.exp()
    top_NK = probabilities_NC.topk(min(5, scores_NC.shape[1]), dim=-1)
    right_N = top_NK.indices[:, 0] == targets_N
    # A probability of 0 has a logarithm that is not finite, and counts nothing.
    entropy_N = -torch.where(probabilities_NC > 0, probabilities_NC * log_probabilities_NC, 0.0).sum(-1)
    return Confidence(
        top1=float(top_NK.values[:, 0].mean()),
        top5=float(top_NK.values.sum(-1).mean()),
        entropy=float(entropy_N.mean()),
        calibration_error=calibration_error(top_NK.values[:, 0], right_N, bins),
    )


def calibration_error(confidence_N: Tensor, right_N: Tensor, bins: int = BINS) -> float:
    """Return the expected calibration error: the gap between confidence and accuracy, averaged over the answers."""
    if bins < 1:
        raise ConfigError(f"bins must be at least 1, got {bins}.")
    confidence_N, right_N = confidence_N.double(), right_N.double()
    bin_N = (confidence_N * bins).ceil().long().sub(1).clamp(0, bins - 1)
    sums = torch.zeros(2, bins, dtype=torch.float64, device=confidence_N.device)
    sums[0].index_add_(0, bin_N, confidence_N)
    sums[1].index_add_(0, bin_N, right_N)
    return float((sums[0] - sums[1]).abs().sum() / len(confidence_N))
