"""What a run on sequences is made of, as typed, closed and frozen settings. No torch in here."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from hookloop.config.settings import ClusterSettings, Settings
from hookloop.curriculum.config import CurriculumConfig
from hookloop.rl.config import OptimizerConfig, Value
from hookloop.supervised.config import GPTConfig


class RLOOConfig(Settings):
    """REINFORCE with a baseline that leaves one out."""

    kind: Literal["rloo"] = "rloo"
    skip_equal_groups: bool = Field(default=True, description="Leave groups out in which all rewards are alike")
    train_schedule: str | None = Field(default=None, description="When it takes part in training")


class GRPOConfig(Settings):
    """Group-relative policy optimisation."""

    kind: Literal["grpo"] = "grpo"
    clip: float = Field(default=0.2, gt=0, description="How far the ratio of probabilities may move from 1")
    kl_coefficient: float = Field(default=0.0, ge=0, description="Weight of the distance to the reference")
    normalise_deviation: bool = Field(default=True, description="Divide by the deviation of a group's rewards")
    skip_equal_groups: bool = Field(default=True, description="Leave groups out in which all rewards are alike")
    train_schedule: str | None = Field(default=None, description="When it takes part in training")


class ImitationConfig(Settings):
    """Right answers, where a lesson knows them."""

    kind: Literal["imitation"] = "imitation"
    coefficient: float = Field(default=1.0, ge=0, description="Its weight")
    only_failed: bool = Field(default=True, description="Only to prompts that no completion was rewarded for")
    train_schedule: str | None = Field(default=None, description="When it takes part in training")


SequenceLossConfig = Annotated[RLOOConfig | GRPOConfig | ImitationConfig, Field(discriminator="kind")]


class SequenceTrainerConfig(Settings):
    """How completions are drawn and learned from."""

    prompts_per_slot: int = Field(default=8, ge=1, description="Prompts of each slot in an epoch")
    group_size: int = Field(default=8, ge=2, description="Completions of each prompt")
    temperature: float = Field(default=1.0, gt=0, description="Of what is drawn in training")
    update_epochs: int = Field(default=1, ge=1, description="Passes over the groups of an epoch")
    minibatch_groups: int = Field(default=32, ge=1, description="Groups per optimizer step")
    refresh_reference_every: int | None = Field(
        default=None, ge=1, description="Epochs after which the reference becomes the model as it is; null: never"
    )
    optimizer: OptimizerConfig = OptimizerConfig(learning_rate=1e-3, max_grad_norm=1.0)
    values: dict[str, Value] = Field(default_factory=dict, description="Scheduled values, by path")


class SequenceConfig(ClusterSettings):
    """A whole run: what a recipe returns and ``hookloop train`` carries out."""

    workload: ClassVar[str] = "sequences"

    total_env_steps: int = Field(default=1_000_000, ge=1, description="Symbols drawn in all")
    curriculum: CurriculumConfig = Field(description="Lessons; env.id is what a lesson is registered as")
    model: GPTConfig = GPTConfig(layers=2, heads=4, width=64)
    losses: dict[str, SequenceLossConfig] = Field(
        default_factory=lambda: {"grpo": GRPOConfig()}, description="By name, in order"
    )
    trainer: SequenceTrainerConfig = SequenceTrainerConfig()
    pass_k: int = Field(default=4, ge=1, description="Draws per prompt that pass@k is measured by in evaluations")
    workers: int = Field(
        default=0, ge=0, description="Who draws completions; 0: this process, or on a cluster one worker for each slot"
    )

    @field_validator("model")
    @classmethod
    def _refuse_dropout(cls, model: GPTConfig) -> GPTConfig:
        """A model that leaves activations out learns from another distribution than it drew from."""
        if model.dropout:
            raise ValueError(f"dropout must be 0 where a model learns from what it draws, got {model.dropout}")
        return model

    @field_validator("curriculum")
    @classmethod
    def _name_lessons(cls, curriculum: CurriculumConfig) -> CurriculumConfig:
        """Write out that a lesson without an id is registered as its own name."""
        lessons = {
            name: lesson.model_copy(update={"env": lesson.env.model_copy(update={"id": lesson.env.id or name})})
            for name, lesson in curriculum.lessons.items()
        }
        return curriculum.model_copy(update={"lessons": lessons})
