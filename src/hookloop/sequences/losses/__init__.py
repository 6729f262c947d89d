"""Losses of sequences; each is gated by a schedule of its own."""

from hookloop.sequences.losses.base import SequenceLoss
from hookloop.sequences.losses.grpo import GRPO
from hookloop.sequences.losses.imitation import Imitation
from hookloop.sequences.losses.rloo import RLOO

__all__ = ["GRPO", "RLOO", "Imitation", "SequenceLoss"]
