"""A source for rollout workers whose rewards are written down beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import Field

from hookloop.core import stream
from hookloop.curriculum import CurriculumConfig, Lesson
from hookloop.evaluation import Played, PlayedEpisode, Wanted
from hookloop.worker import Rollout, SourceConfig, WorkerConfig

LENGTH = 3


class ScriptedSource:
    """Earns in each lesson what was written down, and notes what it was asked for."""

    def __init__(self, rewards: Mapping[str, float], noise: float = 0.0) -> None:
        self.rewards = dict(rewards)
        self.noise = noise
        self.version = 0
        self.versions: list[int] = []
        self.generated: list[tuple[str | None, int, int]] = []
        self.played: list[tuple[str | None, int]] = []
        self.empty_at: set[int] = set()
        self.is_closed = False

    def take_weights(self, version: int, tensors: Mapping[str, Any]) -> None:
        self.version = version
        self.versions.append(version)

    def generate(self, lesson: str | None, count: int, *, seed: int) -> Sequence[Rollout]:
        self.generated.append((lesson, count, seed))
        if len(self.generated) in self.empty_at:
            return []
        rng = stream(seed, "noise")
        return [
            Rollout(lesson, reward, LENGTH, self.version, {"rewards": np.full(LENGTH, reward / LENGTH)})
            for reward in (self._reward(lesson) + self.noise * rng.random() for _ in range(count))
        ]

    def play(self, lesson: str | None, wanted: Wanted) -> Played:
        self.played.append((lesson, wanted.episodes))
        reward = self._reward(lesson)
        return Played(tuple(PlayedEpisode(k, reward, LENGTH, "terminated") for k in range(wanted.episodes)))

    def close(self) -> None:
        self.is_closed = True

    def _reward(self, lesson: str | None) -> float:
        return self.rewards.get(lesson or "", 1.0)


class ScriptedSourceConfig(SourceConfig):
    rewards: dict[str, float] = Field(default_factory=dict)
    noise: float = 0.0

    def build(self, lessons: Mapping[str, Lesson], *, seed: int) -> ScriptedSource:
        return ScriptedSource(self.rewards, self.noise)


def worker_config(**changes: Any) -> WorkerConfig:
    """A worker that generates two rollouts a step with the weights it has, in no lesson."""
    noise = changes.pop("noise", 0.0)
    source = ScriptedSourceConfig(rewards=changes.pop("rewards", {}), noise=noise)
    return WorkerConfig.model_validate({"source": source, "weights": "initial", "rollouts_per_step": 2, **changes})


def lessons(*names: str, **settings: Any) -> CurriculumConfig:
    """Lessons that are all open and alike."""
    return CurriculumConfig(lessons={name: Lesson() for name in names}, strategy="uniform", **settings)
