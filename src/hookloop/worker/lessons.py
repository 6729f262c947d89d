"""Which lesson a worker generates next: drawn by the curriculum's probabilities, told of how it went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hookloop.core import TrainingLoop, stream
from hookloop.curriculum import Curriculum, CurriculumConfig, LessonChange, LessonEnv
from hookloop.errors import ConfigError
from hookloop.evaluation.results import Played
from hookloop.evaluation.tasks import Wanted
from hookloop.rl.lessons import announce_changes, tell_of_change
from hookloop.worker.rollouts import Rollout, success_rate
from hookloop.worker.source import RolloutSource

Plain = Any


class LessonChoice:
    """Draws the lesson of each step; without a curriculum there is one thing to do, and no lesson.

    Args:
        curriculum: Which lessons there are, and how they go; None for none.
        seed: The draws follow from it.
    """

    def __init__(self, curriculum: Curriculum | None, seed: int) -> None:
        self.curriculum = curriculum
        self._seed = seed
        self._selected: str | None = None

    def choose(self, loop: TrainingLoop) -> str | None:
        """Return the lesson of the coming step, and tell the hooks if it is another one."""
        curriculum = self.curriculum
        if curriculum is None:
            return None
        announce_changes(curriculum, loop)
        probabilities = curriculum.probabilities()
        drawn = stream(self._seed, "lesson", loop.clocks.epochs).choices(
            list(probabilities), list(probabilities.values())
        )[0]
        if drawn != self._selected:
            self._selected = drawn
            tell_of_change(loop, LessonChange(drawn, "selected", f"its probability is {probabilities[drawn]:.2f}"))
        loop.context.lesson_id = drawn
        return drawn

    def learn(self, lesson: str | None, rollouts: Sequence[Rollout], loop: TrainingLoop) -> float:
        """Tell the curriculum how a step went, and return how well the lesson goes by now, from 0 to 1."""
        if self.curriculum is None or lesson is None:
            return success_rate(rollouts)
        self.curriculum.update_from_training({lesson: [rollout.reward for rollout in rollouts]})
        announce_changes(self.curriculum, loop)
        return self.curriculum.success(lesson)

    def metrics(self) -> dict[str, float]:
        """Return the curriculum's metrics."""
        return {} if self.curriculum is None else self.curriculum.metrics()

    def state_dict(self) -> dict[str, Plain]:
        """Return plain data from which the same choices follow."""
        if self.curriculum is None:
            return {}
        return {"curriculum": self.curriculum.state_dict(), "selected": self._selected}

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on from a saved choice."""
        if self.curriculum is not None:
            self.curriculum.load_state_dict(saved["curriculum"])
            self._selected = saved["selected"]


def curriculum_by_name(config: CurriculumConfig | None) -> Curriculum | None:
    """Return the curriculum of a worker, in which a lesson's environment is its name: the source knows the rest."""
    if config is None:
        return None
    named = {name: lesson.model_copy(update={"env": LessonEnv(id=name)}) for name, lesson in config.lessons.items()}
    return Curriculum(config.model_copy(update={"lessons": named}))


class SourcePlayer:
    """Plays evaluations with a source, by the names of lessons."""

    def __init__(self, source: RolloutSource) -> None:
        self._source = source

    def play(self, env: Any, wanted: Wanted) -> Played:
        """Play a lesson; None is what the source does without one."""
        lesson = env.id if isinstance(env, LessonEnv) else env
        if lesson is not None and not isinstance(lesson, str):
            raise ConfigError(f"A worker's evaluation plays lessons by name, got {env!r:.100}; leave the suite out.")
        return self._source.play(lesson, wanted)
