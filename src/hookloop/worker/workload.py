"""Rollout generation as a workload of the loop: an epoch is a look for weights, a lesson, and its rollouts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hookloop.core import TrainingLoop, derive_seed
from hookloop.worker.config import WorkerConfig
from hookloop.worker.counts import WORKER_STEPS, Counters
from hookloop.worker.intake import WeightIntake
from hookloop.worker.lessons import LessonChoice
from hookloop.worker.rollouts import Rollout, mean_reward
from hookloop.worker.source import RolloutSource
from hookloop.worker.status import StatusWatch

Plain = Any
Deliver = Callable[[Sequence[Rollout]], None]


class RolloutWorkload:
    """Generates step by step until enough steps are done, or the run is over.

    Args:
        config: How much to generate.
        source: What generates.
        intake: Brings new weights.
        lessons: Chooses what to generate.
        status: What is known of the run.
        counters: What is counted.
        deliver: Takes the rollouts of each step.
        wall_time: What time it is, in seconds since 1970.
        sleep: Waits so many seconds.
    """

    progress_clock = WORKER_STEPS

    def __init__(
        self,
        config: WorkerConfig,
        source: RolloutSource,
        intake: WeightIntake,
        lessons: LessonChoice,
        status: StatusWatch,
        counters: Counters,
        *,
        deliver: Deliver | None,
        wall_time: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self.steps = config.steps
        self.lessons = lessons
        self.counters = counters
        self._config = config
        self._source = source
        self._intake = intake
        self._status = status
        self._deliver = deliver
        self._wall_time = wall_time
        self._sleep = sleep
        self._seed = derive_seed(config.seed, "worker", config.worker)

    def is_finished(self, loop: TrainingLoop) -> bool:
        """Tell whether enough steps are done."""
        return self.steps is not None and loop.context.readings[WORKER_STEPS] >= self.steps

    def run_epoch(self, loop: TrainingLoop) -> bool | None:
        """Take new weights, generate a lesson's rollouts, deliver them, and tell the curriculum and the hooks."""
        if not self._intake.refresh(loop):
            return False
        lesson = self.lessons.choose(loop)
        with loop.rollout():
            rollouts = self._generate(loop, lesson)
            if rollouts:
                self._report(loop, lesson, rollouts)
        if not rollouts:
            self.counters.add(empty_batches=1)
            loop.context.metrics = self._metrics(loop, rollouts)
            self._sleep(self._config.poll_seconds)  # whatever is missing is not there yet
        return None

    def state_dict(self) -> dict[str, Plain]:
        """Return what makes generation go on with the same bits, given the same weights."""
        return {"lessons": self.lessons.state_dict(), "counts": self.counters.state_dict()}

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on from a saved state; weights are received anew."""
        self.lessons.load_state_dict(saved["lessons"])
        self.counters.load_state_dict(saved["counts"])

    def _generate(self, loop: TrainingLoop, lesson: str | None) -> Sequence[Rollout]:
        seed = derive_seed(self._seed, "rollouts", loop.clocks.epochs)
        generated = self._source.generate(lesson, self._config.rollouts_per_step, seed=seed)
        step, now = loop.context.readings[WORKER_STEPS] + 1, self._wall_time()
        rollouts = [replace(each, worker_step=step, created_seconds=now) for each in generated]
        loop.context.batch = rollouts
        if rollouts and self._deliver is not None:
            self._deliver(rollouts)
        return rollouts

    def _report(self, loop: TrainingLoop, lesson: str | None, rollouts: Sequence[Rollout]) -> None:
        """Count the step, fill in what hooks find in the metadata, and fire ``step_end``."""
        env_steps = sum(rollout.length for rollout in rollouts)
        self.counters.add(steps=1, rollouts=len(rollouts), env_steps=env_steps)
        performance = self.lessons.learn(lesson, rollouts, loop)
        loop.context.metadata.update(
            reward=mean_reward(rollouts),
            performance=performance,
            rollouts=len(rollouts),
            length=env_steps / len(rollouts),
            weight_version=loop.clocks.policy_version,
            train_steps=0 if self._status.latest is None else self._status.latest.train_steps,
        )
        finite = [rollout for rollout in rollouts if math.isfinite(rollout.reward)]
        loop.state.rollout_stats = {
            "return": [rollout.reward for rollout in finite],
            "length": [float(rollout.length) for rollout in finite],
        }
        loop.context.metrics = self._metrics(loop, rollouts)
        vars(loop.clocks)[WORKER_STEPS] += 1
        loop.step(env_steps=env_steps, episodes=len(rollouts))

    def _metrics(self, loop: TrainingLoop, rollouts: Sequence[Rollout]) -> dict[str, float]:
        found: dict[str, float] = {"worker/weight_version": float(loop.clocks.policy_version)}
        if self._status.latest is not None:
            found["run/train_steps"] = float(self._status.latest.train_steps)
            found["run/attempt"] = float(self._status.latest.attempt)
        if rollouts:
            found["return/mean"] = mean_reward(rollouts)
            found["episode/length"] = sum(rollout.length for rollout in rollouts) / len(rollouts)
        return {**found, **self.counters.metrics(), **self.lessons.metrics()}
