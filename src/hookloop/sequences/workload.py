"""Learning from sequences as a workload of the loop: an epoch is one rollout of all slots and one optimisation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from hookloop.core import TrainingLoop, derive_seed
from hookloop.pools import WorkerPool
from hookloop.rl.figures import Hyperparameters
from hookloop.rl.lessons import LessonPlan
from hookloop.sequences.collector import SequenceCollector
from hookloop.sequences.learner import SequenceLearner

Plain = Any


class SequenceWorkload:
    """Draws completions and learns from them in turn until enough symbols are drawn.

    Of the clocks, ``env_steps`` counts symbols that were drawn, and ``episodes`` completions.

    Args:
        collector: Has completions drawn.
        learner: Learns.
        lessons: Chooses the lessons of the slots.
        open_pool: Returns the pool that draws; asked at the first rollout, and again after ``close_pool``.
    """

    parts: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "model": ("learner", "model"),
        "optimizer": ("learner", "optimizer"),
    }
    progress_clock: ClassVar[str] = "env_steps"

    def __init__(
        self,
        collector: SequenceCollector,
        learner: SequenceLearner,
        lessons: LessonPlan,
        open_pool: Callable[[], WorkerPool],
    ) -> None:
        self.collector, self.learner, self.lessons = collector, learner, lessons
        self.total_env_steps = 0
        self._open_pool = open_pool
        self._pool: WorkerPool | None = None
        self._hyperparameters = Hyperparameters(learner.optimizer, learner.losses)

    @property
    def planned(self) -> dict[str, float]:
        """How far the clocks will read at the end of the run, about."""
        return {"env_steps": self.total_env_steps}

    @property
    def pool(self) -> WorkerPool:
        """The pool that draws."""
        if self._pool is None:
            self._pool = self._open_pool()
        return self._pool

    def close_pool(self) -> None:
        """End the workers; the next rollout opens a new pool."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def is_finished(self, loop: TrainingLoop) -> bool:
        """Tell whether enough symbols are drawn."""
        return loop.clocks.env_steps >= self.total_env_steps

    def run_epoch(self, loop: TrainingLoop) -> None:
        """Choose lessons, draw, learn, tell the curriculum, and leave the epoch's statistics in the state."""
        self.lessons.begin_rollout(loop)
        weights = self.learner.model.state_dict()
        sequences = self.collector.collect(
            loop, self.pool, weights, with_examples=self.learner.needs_examples(loop.state)
        )
        self.lessons.end_rollout(loop)
        losses = self.learner.learn(loop, sequences)
        loop.clocks.policy_version += 1
        # What is saved must be finite; a mean over a minibatch that was not is shown, below, and not saved.
        loop.state.loss_stats = {name: value for name, value in losses.items() if math.isfinite(value)}
        loop.context.metrics = {
            **self._returns(loop),
            **{f"losses/{name}": value for name, value in losses.items()},
            **self.lessons.metrics(),
        }

    def mean_return(self) -> float | None:
        """Return the mean reward of the last thousand completions; None before the first."""
        recent = self.collector.recent
        return math.fsum(recent) / len(recent) if recent else None

    def figures(self) -> dict[str, float]:
        """Return numbers that are worth a row now and then: the settings in force."""
        return {f"hyperparameters/{path}": value for path, value in self._hyperparameters.read().items()}

    def state_dict(self) -> dict[str, Plain]:
        """Return all that makes training go on with the same bits."""
        return {
            "collector": self.collector.state_dict(),
            "learner": self.learner.state_dict(),
            "lessons": self.lessons.state_dict(),
        }

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on from a saved state."""
        self.collector.load_state_dict(saved["collector"])
        self.learner.load_state_dict(saved["learner"])
        self.lessons.load_state_dict(saved["lessons"])

    def perturb(self, seed: int) -> None:
        """Draw and shuffle with other random numbers from here on."""
        self.collector.perturb(seed)
        self.learner.generator.manual_seed(derive_seed(seed, "sample"))
        self.lessons.perturb(seed)

    def _returns(self, loop: TrainingLoop) -> dict[str, float]:
        lengths, mean = loop.state.rollout_stats["length"], self.mean_return()
        found = {"episode/length": math.fsum(lengths) / len(lengths)}
        return found if mean is None else {"return/mean": mean, **found}
