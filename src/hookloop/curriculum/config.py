"""What a curriculum is made of, as typed, closed and frozen settings. No torch and no numpy in here."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from hookloop.config.settings import Settings
from hookloop.curriculum.graph import refuse_cycles, refuse_unknown


class LessonEnv(Settings):
    """Where a lesson's environment differs from the run's."""

    id: str | None = Field(default=None, description="The environment's id; null for that of the run")
    kwargs: dict[str, Any] = Field(
        default_factory=dict, description="Arguments beside, or in place of, those of the run"
    )


class Dependency(Settings):
    """A lesson that comes before."""

    lesson: str = Field(description="Its name")
    threshold: float | None = Field(
        default=None, ge=0, le=1, description="The success it must reach; null for this lesson's start_threshold"
    )


class Lesson(Settings):
    """One thing to learn."""

    env: LessonEnv = LessonEnv()
    dependencies: tuple[Dependency, ...] = Field(default=(), description="Lessons that come before; all of them")
    start_threshold: float = Field(default=0.5, ge=0, le=1, description="Success of the lessons before that opens it")
    stop_threshold: float = Field(default=0.9, ge=0, le=1, description="Success in evaluation that graduates it")
    success_return: float = Field(default=0.0, description="An episode succeeded if its return is above this")


class CurriculumConfig(Settings):
    """Lessons, and how they are chosen. The frequencies are those of the evaluation hooks; 0 or null: never."""

    lessons: dict[str, Lesson] = Field(min_length=1, description="By name, in order")
    strategy: Literal["adaptive", "uniform"] = Field(
        default="adaptive", description="By what there is to learn, or all lessons alike from the start"
    )
    slots: int = Field(default=8, ge=1, description="Groups of environments, each with a lesson of its own")
    minimum_sample_probability: float = Field(default=0.05, ge=0, le=1, description="Of every lesson that is open")
    success_alpha: float = Field(default=0.1, gt=0, le=1, description="Weight of the newest episode in the success")
    success_prior: float = Field(default=0.5, ge=0, le=1, description="Success before the first episode")
    novelty_decay: float = Field(default=0.01, ge=0, description="How fast, per episode, a lesson stops being new")
    minimum_episodes: int = Field(default=20, ge=0, description="Of a lesson, before it opens another")
    plateau_window: int = Field(default=10, ge=3, description="Points that must show no trend before graduation")
    plateau_episodes: int = Field(default=20, ge=1, description="Training episodes that make one such point")
    plateau_threshold: float = Field(default=0.01, gt=0, description="Largest relative change per point that is flat")
    regression_margin: float = Field(
        default=0.15, ge=0, le=1, description="A graduated lesson so far below its stop_threshold has regressed"
    )
    micro_eval_frequency: int | None = Field(default=10, description="Epochs between looks at the current lesson")
    micro_eval_n_examples: int = Field(default=4, ge=1, description="Episodes of such a look")
    eval_frequency: int | None = Field(default=100, description="Epochs between evaluations of all lessons")
    eval_n_examples: int = Field(default=64, ge=1, description="Episodes of each lesson in such an evaluation")

    @model_validator(mode="after")
    def _check(self) -> CurriculumConfig:
        graph = {name: [each.lesson for each in lesson.dependencies] for name, lesson in self.lessons.items()}
        refuse_unknown(graph)
        refuse_cycles(graph)
        if self.minimum_sample_probability * len(self.lessons) > 1:
            raise ValueError(
                f"minimum_sample_probability={self.minimum_sample_probability} for each of {len(self.lessons)} lessons "
                f"is more than 1 in all; use at most {1 / len(self.lessons):.3g}."
            )
        return self
