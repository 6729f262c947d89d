"""The base of all settings, and those that every kind of run shares. No torch in here."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

TrackerOption = str | int | float | bool | list[str] | None


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


def options_by_name(given: Any) -> Any:
    """Return names, or one name, as the mapping from names to options that they stand for."""
    if isinstance(given, str):
        return {given: {}}
    if isinstance(given, list | tuple):
        return {name: dict[str, TrackerOption]() for name in cast("list[Any]", given)}
    return given


TrackersConfig = Annotated[
    dict[str, dict[str, TrackerOption]],
    BeforeValidator(options_by_name),
    Field(
        description="Who is told the metrics besides metrics.jsonl: names, or options by name",
    ),
]
"""``["tensorboard"]``, or ``{"wandb": {"project": "x", "mode": "offline"}}``. None of it changes training."""


class MetricsConfig(Settings):
    """What is measured beside the losses and returns. None of it changes training."""

    log_every: str = Field(
        default="at 1 epochs or every 10 epochs", description="When episodes, experience and settings are logged"
    )
    times_every: str = Field(default="every 1 seconds", description="When the times of the phases are logged")
    gradients: str | None = Field(default="every 100 optimizer_steps", description="When gradients are looked at")
    monitor_seconds: float | None = Field(default=10.0, gt=0, description="Seconds between two looks at the machine")


class RunSettings(Settings):
    """What every kind of run shares: what is kept, watched and shown of it. None of it changes training."""

    workload: ClassVar[str]

    checkpoints: CheckpointConfig = CheckpointConfig()
    metrics: MetricsConfig = MetricsConfig()
    trackers: TrackersConfig = Field(default_factory=dict[str, dict[str, TrackerOption]])
    stats_url: str | None = Field(
        default=None, description="A database for the statistics of many runs; by default a file in the run's folder"
    )
    stats_episodes: bool = Field(default=False, description="Keep a row for every episode; costs a few percent")
    nan_policy: Literal["stop", "skip", "roll-back", "off"] = Field(
        default="stop", description="What to do about numbers that are not finite"
    )


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


class ClusterSettings(RunSettings):
    """A run that can have workers, here or on many machines."""

    cluster: str = Field(
        default="local",
        pattern=r"^(local|ray|ray://\S+:\d+)$",
        description="Where workers run: local, ray (on this machine, or where RAY_ADDRESS points), or ray://HOST:PORT",
    )
    worker_cpus: float = Field(default=1.0, ge=0, description="Cores that a cluster sets aside for a worker")
    worker_resources: dict[str, float] = Field(
        default_factory=dict, description="What else it sets aside, by the names its machines were given"
    )
