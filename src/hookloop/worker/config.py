"""What a rollout worker is made of, as typed, closed and frozen settings. No torch in here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, SerializeAsAny

from hookloop.config.settings import Settings
from hookloop.curriculum.config import CurriculumConfig
from hookloop.worker.gymnasium_config import GymnasiumSourceConfig
from hookloop.worker.source import SourceConfig


def _source_from_mapping(given: Any) -> Any:
    return GymnasiumSourceConfig.model_validate(given) if isinstance(given, Mapping) else given


class WorkerConfig(Settings):
    """A whole worker.

    A kind of source of your own: give its settings, or narrow ``source`` in a subclass.
    """

    source: Annotated[SerializeAsAny[SourceConfig], BeforeValidator(_source_from_mapping)] = Field(
        description="What generates; a mapping is settings of episodes in a Gymnasium environment"
    )
    curriculum: CurriculumConfig | None = Field(default=None, description="Lessons; null for one thing to do")
    steps: int | None = Field(default=None, ge=1, description="Steps in all; null: until it is told to stop")
    rollouts_per_step: int = Field(default=8, ge=1, description="Rollouts of one lesson that make a step")
    seed: int = Field(default=0, ge=0, description="The run's; every random number follows from it and the worker")
    worker: int = Field(default=0, ge=0, description="Which of the run's workers this is, from 0")
    weights: Literal["receive", "initial"] = Field(
        default="receive", description="Wait for a trainer's; or act with those the source begins with, for good"
    )
    max_weight_transfer_wait_seconds: float = Field(
        default=0.0, ge=0, description="How long a step waits for newer weights; 0: goes on with those it has"
    )
    first_weights_wait_seconds: float = Field(
        default=600.0, gt=0, description="How long to wait for the first weights, before giving up"
    )
    poll_seconds: float = Field(default=0.1, gt=0, description="Between two looks for weights while waiting")
    status_seconds: float = Field(default=1.0, ge=0, description="Between two looks at whether the run goes on")
