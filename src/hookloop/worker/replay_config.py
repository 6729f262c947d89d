"""The settings of a replay buffer. No torch in here."""

from __future__ import annotations

from pydantic import Field

from hookloop.config.settings import Settings


class ReplayBufferConfig(Settings):
    """What a replay buffer keeps, and what it prefers."""

    capacity: int = Field(default=1024, ge=1, description="Rollouts of each lesson; the oldest give way")
    recency_alpha: float = Field(
        default=1.0, ge=0, description="A rollout counts rank**alpha, the newest has the highest rank; 0: all alike"
    )
    max_samples: int | None = Field(default=None, ge=1, description="A rollout is used so often; null: any number")
    max_age_steps: int | None = Field(
        default=None, ge=0, description="Versions by which the weights of a rollout may lag behind; null: any number"
    )
    max_age_seconds: float | None = Field(default=None, gt=0, description="How old a rollout may be; null: any age")
    drop_zero_variance_groups: bool = Field(
        default=False, description="Refuse groups that earned the same throughout: there is nothing to learn from them"
    )
