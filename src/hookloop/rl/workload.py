"""Reinforcement learning as a workload of the loop: an epoch is one collection and one optimisation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from hookloop.core import TrainingLoop, derive_seed
from hookloop.rl.collector import Collector
from hookloop.rl.figures import Hyperparameters, experience_figures
from hookloop.rl.learner import Learner
from hookloop.rl.lessons import LessonPlan

Plain = Any


class RLWorkload:
    """Collects and learns in turn until enough environment steps are done.

    Args:
        collector: Collects.
        learner: Learns.
        lessons: Chooses what to collect from; None where there is one environment for all.
    """

    parts: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "model": ("learner", "policy"),
        "optimizer": ("learner", "optimizer"),
    }
    progress_clock: ClassVar[str] = "env_steps"

    def __init__(self, collector: Collector, learner: Learner, lessons: LessonPlan | None = None) -> None:
        self.collector = collector
        self.learner = learner
        self.lessons = lessons
        self.total_env_steps = 0
        self._hyperparameters = Hyperparameters(learner.optimizer, learner.losses)

    @property
    def exactness(self) -> str:
        """What a resume promises: ``bit-exact``, ``learner-exact`` or ``approximate``."""
        return self.collector.exactness

    @property
    def inexact_because(self) -> str:
        """Why a resume is not bit-exact; empty if it is."""
        return self.collector.inexact_because

    @property
    def planned(self) -> dict[str, float]:
        """How far the clocks will read at the end of the run, about."""
        experience = self.collector.experience
        per_epoch = experience.horizon * self.collector.envs.num_envs
        return {"env_steps": self.total_env_steps, "epochs": math.ceil(self.total_env_steps / per_epoch)}

    def is_finished(self, loop: TrainingLoop) -> bool:
        """Tell whether enough environment steps are done."""
        return loop.clocks.env_steps >= self.total_env_steps

    def run_epoch(self, loop: TrainingLoop) -> None:
        """Collect, estimate advantages, learn, and leave the epoch's statistics in the state."""
        collector, learner = self.collector, self.learner
        if self.lessons is not None:
            collector.take_over(self.lessons.begin_rollout(loop))
        collector.collect(loop)
        if self.lessons is not None:
            self.lessons.end_rollout(loop)
        learner.estimate(collector.experience, collector.last_values())
        states = collector.segment_states if collector.policy.is_recurrent else None
        losses = learner.learn(loop, has_fillers=collector.envs.has_fillers, states=states)
        loop.clocks.policy_version += 1
        # What is saved must be finite; a mean over a minibatch that was not is shown, below, and not saved.
        loop.state.loss_stats = {name: value for name, value in losses.items() if math.isfinite(value)}
        loop.context.metrics = {**self._returns(), **{f"losses/{name}": value for name, value in losses.items()}}
        loop.context.metrics |= collector.metrics()
        if self.lessons is not None:
            loop.context.metrics |= self.lessons.metrics()

    def mean_return(self) -> float | None:
        """Return the mean over the last hundred episodes; None before the first has finished."""
        recent = self.collector.recent
        return float(np.mean([return_ for return_, _ in recent])) if recent else None

    def figures(self) -> dict[str, float]:
        """Return numbers of the last epoch that are worth a row: its experience, and the settings in force."""
        found = {f"experience/{name}": value for name, value in experience_figures(self.collector.experience).items()}
        return {**found, **{f"hyperparameters/{path}": value for path, value in self._hyperparameters.read().items()}}

    def state_dict(self) -> dict[str, Plain]:
        """Return all that makes training go on with the same bits."""
        saved = {"collector": self.collector.state_dict(), "learner": self.learner.state_dict()}
        return saved if self.lessons is None else {**saved, "lessons": self.lessons.state_dict()}

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on from a saved state."""
        self.collector.load_state_dict(saved["collector"])
        self.learner.load_state_dict(saved["learner"])
        if self.lessons is not None:
            self.lessons.load_state_dict(saved["lessons"])

    def perturb(self, seed: int) -> None:
        """Act and sample with other random numbers from here on; the environments stay as they are."""
        self.collector.generator.manual_seed(derive_seed(seed, "act"))
        self.learner.generator.manual_seed(derive_seed(seed, "sample"))
        if self.lessons is not None:
            self.lessons.perturb(seed)

    def _returns(self) -> dict[str, float]:
        recent = self.collector.recent
        if not recent:
            return {}
        return {
            "return/mean": float(np.mean([return_ for return_, _ in recent])),
            "episode/length": float(np.mean([length for _, length in recent])),
        }
