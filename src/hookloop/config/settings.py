"""The base of all settings, and those that every kind of run shares. No torch in here."""

from __future__ import annotations

from typing import ClassVar, Literal

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


class MetricsConfig(Settings):
    """What is measured beside the losses and returns. None of it changes training."""

    log_every: str = Field(default="every 1 epochs", description="When episodes, experience and settings are logged")
    times_every: str = Field(default="every 1 seconds", description="When the times of the phases are logged")
    gradients: str | None = Field(default="every 100 optimizer_steps", description="When gradients are looked at")
    monitor_seconds: float | None = Field(default=10.0, gt=0, description="Seconds between two looks at the machine")


class RunSettings(Settings):
    """What every kind of run shares: what is kept, watched and shown of it. None of it changes training."""

    workload: ClassVar[str]

    checkpoints: CheckpointConfig = CheckpointConfig()
    metrics: MetricsConfig = MetricsConfig()
    stats_url: str | None = Field(
        default=None, description="A database for the statistics of many runs; by default a file in the run's folder"
    )
    stats_episodes: bool = Field(default=False, description="Keep a row for every episode; costs a few percent")
    nan_policy: Literal["stop", "skip", "roll-back", "off"] = Field(
        default="stop", description="What to do about numbers that are not finite"
    )
