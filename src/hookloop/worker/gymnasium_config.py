"""The settings of episodes in a Gymnasium environment. No torch in here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from pydantic import Field, field_validator

from hookloop.curriculum.config import Lesson
from hookloop.rl.config import EnvConfig, PolicyConfig
from hookloop.worker.source import SourceConfig

if TYPE_CHECKING:
    from hookloop.worker.gymnasium_source import GymnasiumSource


class GymnasiumSourceConfig(SourceConfig):
    """A policy that plays episodes; lessons are environments that differ in their id or their arguments."""

    kind: Literal["gymnasium"] = "gymnasium"
    env: EnvConfig = Field(description="The environment; lessons say what differs in theirs")
    policy: PolicyConfig = Field(default=PolicyConfig(), description="The network, as the trainer has it")

    @field_validator("env")
    @classmethod
    def _refuse_scaling(cls, env: EnvConfig) -> EnvConfig:
        if env.normalise_observations or env.normalise_rewards:
            raise ValueError(
                "a worker gets weights and no statistics, so it cannot scale as training does; "
                "leave normalise_observations and normalise_rewards out."
            )
        return env

    def build(self, lessons: Mapping[str, Lesson], *, seed: int) -> GymnasiumSource:
        """Make the source."""
        from hookloop.worker.gymnasium_source import GymnasiumSource  # with torch

        return GymnasiumSource(self.env, policy=self.policy, lessons=lessons, seed=seed)
