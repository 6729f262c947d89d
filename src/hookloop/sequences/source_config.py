"""The settings of a rollout worker that draws sequences. No torch in here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from hookloop.curriculum.config import Lesson
from hookloop.supervised.config import GPTConfig
from hookloop.worker.source import SourceConfig

if TYPE_CHECKING:
    from hookloop.sequences.source import SequenceSource


class SequenceSourceConfig(SourceConfig):
    """A transformer that answers prompts; lessons say in ``env`` what they are registered as."""

    kind: Literal["sequences"] = "sequences"
    model: GPTConfig = Field(default=GPTConfig(layers=2, heads=4, width=64), description="As the trainer has it")
    group_size: int = Field(default=8, ge=1, description="Responses to each prompt")
    temperature: float = Field(default=1.0, gt=0, description="Of what is drawn for training")
    pass_k: int = Field(default=4, ge=1, description="Draws per prompt that pass@k is measured by in evaluations")

    def build(self, lessons: Mapping[str, Lesson], *, seed: int) -> SequenceSource:
        """Make the source."""
        from hookloop.sequences.source import SequenceSource  # with torch

        return SequenceSource(self, lessons, seed=seed)
