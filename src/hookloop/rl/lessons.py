"""Lessons in reinforcement learning: before each rollout the curriculum chooses, after it the curriculum is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from hookloop.core import TrainingLoop, derive_seed
from hookloop.core.rng import stream
from hookloop.curriculum import Curriculum, EvaluationStats, LessonChange, allot
from hookloop.errors import ConfigError
from hookloop.rl.envs import LessonEnvs, Move

Plain = Any


class Slots(Protocol):
    """Places that each have a lesson: groups of environments, or of prompts."""

    @property
    def slots(self) -> int:
        """How many there are."""
        ...

    @property
    def lessons(self) -> Sequence[str]:
        """What each has now."""
        ...

    def assign(self, lessons: Sequence[str]) -> list[Move]:
        """Give each a lesson, and return what moved."""
        ...

    def drain_played(self) -> Mapping[str, list[float]]:
        """Hand over the returns of what ended since the last call, by lesson."""
        ...


class LessonPlan:
    """Joins a curriculum with the environments, or whatever else plays its lessons.

    Args:
        curriculum: Which lessons there are, and how they go.
        envs: The environments, without wrappers; they know a lesson for each of the curriculum's.
        seed: The random stream of the choices follows from it.
    """

    def __init__(self, curriculum: Curriculum, envs: Slots, *, seed: int = 0) -> None:
        self.curriculum = curriculum
        self.envs = envs
        self._seed = derive_seed(seed, "lessons")
        self._rollouts = 0
        self._selected: str | None = None

    def begin_rollout(self, loop: TrainingLoop) -> list[Move]:
        """Give each slot its lesson for the coming rollout, and return which slots changed theirs."""
        self.announce(loop)
        probabilities = self.curriculum.probabilities()
        offset = stream(self._seed, self._rollouts).random()
        self._rollouts += 1
        moves = self.envs.assign(allot(probabilities, self.envs.lessons, offset))
        counts = Counter(self.envs.lessons)
        selected = max(probabilities, key=lambda lesson: counts[lesson])
        if selected != self._selected:
            self._selected = selected
            share = f"{counts[selected]} of {self.envs.slots} slots play it"
            tell_of_change(
                loop, LessonChange(selected, "selected", f"{share}, its probability is {probabilities[selected]:.2f}")
            )
        loop.context.lesson_id = selected
        return moves

    def end_rollout(self, loop: TrainingLoop) -> None:
        """Tell the curriculum of the episodes that ended, and the hooks of what that changed."""
        self.curriculum.update_from_training(self.envs.drain_played())
        self.announce(loop)

    def update_from_evaluation(self, scores: Mapping[str, EvaluationStats], loop: TrainingLoop) -> None:
        """Tell the curriculum of a full evaluation, and the hooks of what that changed."""
        self.curriculum.update_from_evaluation(scores)
        self.announce(loop)

    def announce(self, loop: TrainingLoop) -> None:
        """Fire ``lesson_changed`` for what has changed, and show the curriculum in the state."""
        announce_changes(self.curriculum, loop)

    def metrics(self) -> dict[str, float]:
        """Return the curriculum's metrics."""
        return self.curriculum.metrics()

    def perturb(self, seed: int) -> None:
        """Choose with other random numbers from here on."""
        self._seed = derive_seed(seed, "lessons")

    def state_dict(self) -> dict[str, Plain]:
        """Return plain data from which the same choices follow."""
        return {
            "curriculum": self.curriculum.state_dict(),
            "seed": self._seed,
            "rollouts": self._rollouts,
            "selected": self._selected,
        }

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on from a saved plan."""
        self.curriculum.load_state_dict(saved["curriculum"])
        self._seed, self._rollouts, self._selected = saved["seed"], saved["rollouts"], saved["selected"]


def find_lesson_envs(envs: object) -> LessonEnvs:
    """Return the environments of lessons below all wrappers."""
    inside = envs
    while not isinstance(inside, LessonEnvs):
        inside = getattr(inside, "envs", None)
        if inside is None:
            raise ConfigError(
                f"A curriculum chooses among environments of lessons, but {type(envs).__name__} has none; "
                "give the trainer LessonEnvs, or leave the curriculum out."
            )
    return inside


def announce_changes(curriculum: Curriculum, loop: TrainingLoop) -> None:
    """Fire ``lesson_changed`` for what has changed in a curriculum, and show it in the state."""
    current = loop.context.lesson_id
    for change in curriculum.drain_changes():
        tell_of_change(loop, change)
    loop.context.lesson_id = current
    loop.state.curriculum = curriculum.summary()


def tell_of_change(loop: TrainingLoop, change: LessonChange) -> None:
    """Fire ``lesson_changed`` for one change."""
    loop.context.metadata["lesson_change"] = change
    loop.lesson_changed(change.lesson)
