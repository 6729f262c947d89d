"""The base of all settings, and those that every kind of run shares. No torch in here."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Settings(BaseModel):
    """Settings that cannot be misspelt or changed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class CheckpointConfig(Settings):
    """When a run is saved, and what is kept. None of it changes training."""

    schedule: str = Field(default="every 30 seconds", description="When to save; the end always is")
    keep_last: int = Field(default=3, ge=1, description="The newest to keep")
    keep_best: int = Field(default=1, ge=0, description="The best to keep, by the metric")
    keep_every: int | None = Field(default=None, ge=1, description="Steps; one of each so many is kept for good")
    metric: str = Field(default="return/mean", description="What 'best' means")
    mode: Literal["max", "min"] = Field(default="max", description="Whether more is better, or less")
    asynchronous: bool = Field(default=True, description="Write in a thread; training pays for one copy in memory")
    max_failed_saves: int = Field(default=3, ge=1, description="So many failed writes in a row end the run")
    publish_to: str | None = Field(default=None, description="A URI to copy checkpoints to, such as s3://bucket/runs")
    publish_interval: int = Field(default=1, ge=1, description="Epochs between two that are published")


class EvaluationConfig(Settings):
    """When the policy is scored in environments of its own, and how. None of it changes training."""

    schedule: str | None = Field(
        default=None,
        description="When, such as 'every 50 epochs', and at the end; 'never': at the end; null: not at all",
    )
    episodes: int = Field(default=16, ge=1, description="Episodes in each simulation")
    greedy: bool = Field(default=True, description="Take the likeliest actions; else draw them as in training")
    seed: int | None = Field(
        default=None, ge=0, lt=2**30, description="Of the first episode; null: from the run's seed"
    )
    num_envs: int | None = Field(default=None, ge=1, description="Environments at once; null: as many as in training")
    max_seconds: float | None = Field(default=300.0, gt=0, description="For a simulation; what is left then has failed")
    suite: dict[str, dict[str, Any]] = Field(
        default_factory=dict[str, dict[str, Any]], description="More simulations by name, by what differs in env"
    )
    record: int = Field(default=0, ge=0, description="Episodes of each simulation to keep as replays")
    render: Literal["rgb_array", "ansi"] | None = Field(default=None, description="Keep what is drawn in them, too")
    keep_replays: int = Field(default=100, ge=1, description="The newest replays to keep")
    where: Literal["inline", "background", "worker"] = Field(
        default="inline", description="Training waits; or a thread plays; or processes of 'hookloop eval-worker' do"
    )
