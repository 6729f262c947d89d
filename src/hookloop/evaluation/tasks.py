"""What is to be evaluated, when and how: a named task, and the simulations it stands for."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_args

from hookloop.core import Never, Schedule, as_schedule, derive_seed
from hookloop.errors import ConfigError, UnknownNameError
from hookloop.evaluation.results import Key, Played

Scope = Literal["training", "lesson", "lessons", "sampled", "suite"]
Render = Literal["rgb_array", "ansi"]

TRAINING: Key = ("training", "training")
MOST_SEEDS = 2**31


class Lesson(Protocol):
    """A lesson, as far as an evaluation looks: the settings of its environment."""

    @property
    def env(self) -> Any:
        """What differs from the training environment: settings by name, an ``id`` with ``kwargs``, or an id alone."""
        ...


class Curriculum(Protocol):
    """A curriculum, as far as an evaluation looks."""

    @property
    def lessons(self) -> Mapping[str, Lesson]:
        """The lessons by their ids."""
        ...

    def update_from_evaluation(self, scores: Any, /) -> None:
        """Take the scores of a full evaluation: a ``LessonScore`` by lesson."""
        ...


@dataclass(frozen=True, slots=True)
class Wanted:
    """How the episodes of one simulation are to be played."""

    episodes: int
    seed: int
    greedy: bool = True
    max_seconds: float | None = None
    num_envs: int | None = None
    record: int = 0
    render: Render | None = None


class Player(Protocol):
    """A policy, frozen, that can play."""

    def play(self, env: Any, wanted: Wanted) -> Played:
        """Play episodes in an environment: None is the one of training, settings say what differs from it."""
        ...


@dataclass(frozen=True, slots=True)
class EvaluationTask:
    """One evaluation that comes again and again.

    Args:
        name: What it is called; its metrics begin with it.
        schedule: When, on the clock of epochs unless it names another: a schedule or its text; None is at the end only.
        episodes: How many are played in each simulation.
        scope: ``training`` is the environment of training, ``lesson`` the current lesson, ``lessons`` all of them,
            ``sampled`` some of them, ``suite`` nothing but the suite.
        suite: Simulations by name, besides the scope: what differs from the training environment, or an id.
        category: Under which the scores of the scope stand; the scope by default.
        seed: Of the first episode, the others count on from it; by default it follows from the run's seed and the
            name, so that each evaluation of a run meets the same episodes.
        greedy: Take the likeliest actions; else actions are drawn as in training.
        max_seconds: For each simulation; episodes that have not ended by then are counted as failed.
        num_envs: Environments stepped together; by default as many as in training, or as there are episodes.
        num_sampled: How many lessons ``sampled`` takes.
        updates_curriculum: Tell the curriculum the scores of its lessons.
        record: How many episodes of each simulation are recorded.
        render: Record what the environment draws, too: frames (``rgb_array``) or text (``ansi``).
    """

    name: str = "eval"
    schedule: Schedule | str | None = None
    episodes: int = 16
    scope: Scope = "training"
    suite: Mapping[str, Any] = field(default_factory=dict[str, Any])
    category: str | None = None
    seed: int | None = None
    greedy: bool = True
    max_seconds: float | None = 300.0
    num_envs: int | None = None
    num_sampled: int = 1
    updates_curriculum: bool = False
    record: int = 0
    render: Render | None = None

    def __post_init__(self) -> None:
        if self.scope not in get_args(Scope):
            raise UnknownNameError("scope of an evaluation", str(self.scope), get_args(Scope))
        _require_at_least(1, "episodes", self.episodes, self.name)
        _require_at_least(0, "record", self.record, self.name)
        _require_at_least(1, "num_sampled", self.num_sampled, self.name)
        if self.num_envs is not None:
            _require_at_least(1, "num_envs", self.num_envs, self.name)
        if self.max_seconds is not None and not self.max_seconds > 0:
            raise ConfigError(f"The evaluation {self.name!r} needs max_seconds above 0, got {self.max_seconds!r}.")
        if self.scope == "suite" and not self.suite:
            raise ConfigError(f"The evaluation {self.name!r} has the scope 'suite', and no simulation in its suite.")

    @property
    def when(self) -> Schedule:
        """Its schedule as a value; a text that is none is refused here."""
        return Never() if self.schedule is None else as_schedule(self.schedule)

    @property
    def needs_curriculum(self) -> bool:
        """Whether there is nothing to evaluate without a curriculum."""
        return self.scope in ("lesson", "lessons", "sampled")

    def first_seed(self, run_seed: int) -> int:
        """Return the seed of its first episode in a run."""
        if self.seed is not None:
            return self.seed
        return derive_seed(run_seed, "evaluation", self.name) % (MOST_SEEDS - 1_000_000)

    def wanted(self, seed: int) -> Wanted:
        """Return how to play."""
        return Wanted(
            self.episodes, seed, self.greedy, self.max_seconds, self.num_envs, min(self.record, self.episodes),
            self.render,
        )  # fmt: skip

    def simulations(
        self, curriculum: Curriculum | None = None, lesson_id: str | None = None, *, seed: int = 0
    ) -> dict[Key, Any]:
        """Return what is to be simulated, by category and name; ``seed`` decides which lessons are sampled."""
        found = {(self.category or self.scope, name): env for name, env in self._scoped(curriculum, lesson_id, seed)}
        return {**found, **{("suite", name): env for name, env in self.suite.items()}}

    def _scoped(self, curriculum: Curriculum | None, lesson_id: str | None, seed: int) -> Sequence[tuple[str, Any]]:
        if self.scope == "suite":
            return []
        if self.scope == "training":
            return [(TRAINING[1], None)]
        if curriculum is None:
            raise ConfigError(f"The evaluation {self.name!r} has the scope {self.scope!r}, which needs a curriculum.")
        lessons = curriculum.lessons
        if self.scope == "lesson":
            if lesson_id is None:
                raise ConfigError(f"The evaluation {self.name!r} is of the current lesson, and there is none now.")
            ids = [lesson_id]
        elif self.scope == "lessons":
            ids = list(lessons)
        else:
            ids = random.Random(seed).sample(sorted(lessons), min(self.num_sampled, len(lessons)))
        for each in ids:
            if each not in lessons:
                raise UnknownNameError("lesson", each, lessons, where=f"for the evaluation {self.name!r}")
        return [(each, lessons[each].env) for each in ids]


def _require_at_least(least: int, option: str, value: object, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(f"The evaluation {name!r} needs {option} of at least {least}, got {value!r}.")
