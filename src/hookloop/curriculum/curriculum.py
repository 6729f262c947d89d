"""The curriculum: which lessons are open, how well they go, and which to train next."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from hookloop.curriculum.config import CurriculumConfig, Lesson
from hookloop.curriculum.plateau import has_plateaued
from hookloop.curriculum.stats import EvaluationStats, LessonStats
from hookloop.curriculum.weights import learning_weight, with_floor
from hookloop.errors import HookStateError, UnknownNameError

Plain = Any
LessonState = Literal["locked", "unlocked", "graduated", "regressed"]

STATE_VERSION = 1
STATE_NUMBERS: Mapping[str, int] = {"locked": 0, "unlocked": 1, "graduated": 2, "regressed": 3}


@dataclass(frozen=True, slots=True)
class LessonChange:
    """A lesson that was selected, unlocked, graduated or regressed: which, to what, and why."""

    lesson: str
    change: Literal["selected", "unlocked", "graduated", "regressed"]
    why: str


class Curriculum:
    """Lessons with their states and statistics; nothing in here draws random numbers or touches an environment.

    A lesson is locked until each lesson it depends on has reached its threshold in training; then it is unlocked.
    It graduates when an evaluation finds its ``stop_threshold`` and its course in training is flat, and has regressed
    when a later evaluation finds it ``regression_margin`` below that: it is trained like an unlocked one again, and
    may graduate again. What training and evaluation say is kept apart.

    Args:
        config: The lessons and the settings.
    """

    def __init__(self, config: CurriculumConfig) -> None:
        self.config = config
        self.lessons: Mapping[str, Lesson] = config.lessons
        self.training = {name: self._fresh() for name in self.lessons}
        self.evaluation = {name: self._fresh() for name in self.lessons}
        self.states: dict[str, LessonState] = dict.fromkeys(self.lessons, "locked")
        self.changes: list[LessonChange] = []
        self._open()

    def state(self, lesson: str) -> LessonState:
        """Return a lesson's state."""
        self._require(lesson)
        return self.states[lesson]

    def success(self, lesson: str) -> float:
        """Return a lesson's success in training."""
        self._require(lesson)
        return self.training[lesson].success

    def evaluated_success(self, lesson: str) -> float | None:
        """Return a lesson's success in its last full evaluation; None before the first."""
        self._require(lesson)
        found = self.evaluation[lesson]
        return found.success if found.episodes else None

    def probabilities(self) -> dict[str, float]:
        """Return how likely each lesson is to be trained: those that are open, in order; they add up to 1.

        Mastered lessons keep the floor, so that forgetting them is noticed.
        """
        decay = self.config.novelty_decay
        weights: dict[str, float] = {}
        for name, state in self.states.items():
            if self.config.strategy == "uniform":
                weights[name] = 1.0
            elif state == "graduated":
                weights[name] = 0.0
            elif state != "locked":
                stats = self.training[name]
                weights[name] = learning_weight(stats.success, stats.episodes, novelty_decay=decay)
        return with_floor(weights, self.config.minimum_sample_probability)

    def update_from_training(self, returns: Mapping[str, Iterable[float]]) -> None:
        """Take in the returns of finished training episodes, by lesson, and open what they open."""
        for lesson in returns:
            self._require(lesson)
        for lesson, found in returns.items():
            stats, above = self.training[lesson], self.lessons[lesson].success_return
            for return_ in found:
                if math.isfinite(return_):
                    stats.observe(succeeded=return_ > above, return_=return_)
        self._open()

    def update_from_evaluation(self, scores: Mapping[str, EvaluationStats]) -> None:
        """Take in a full evaluation, by lesson: they graduate and regress by it. One without episodes says nothing."""
        for lesson in scores:
            self._require(lesson)
        for lesson, found in scores.items():
            if not found.episodes:
                continue
            self.evaluation[lesson].replace(found)
            self._judge(lesson)

    def drain_changes(self) -> list[LessonChange]:
        """Hand over what has changed since the last call; whoever tells of it takes it."""
        changes, self.changes = self.changes, []
        return changes

    def summary(self) -> dict[str, Plain]:
        """Return what a reader wants to know of each lesson, as plain data."""
        probabilities = self.probabilities()
        return {"lessons": {name: self._summary_of(name, probabilities.get(name, 0.0)) for name in self.lessons}}

    def metrics(self) -> dict[str, float]:
        """Return ``curriculum/mastery``, and ``curriculum/<lesson>/...``: success, probability, state, episodes.

        Mastery is the mean success over all lessons, in which those with fewer than ``minimum_episodes`` count as 0.
        A lesson that was never played has no success.
        """
        found: dict[str, float] = {"curriculum/mastery": self._mastery()}
        for name, about in self.summary()["lessons"].items():
            if about["episodes"]:
                found[f"curriculum/{name}/success"] = about["success"]
            found[f"curriculum/{name}/probability"] = about["probability"]
            found[f"curriculum/{name}/state"] = STATE_NUMBERS[about["state"]]
            found[f"curriculum/{name}/episodes"] = about["episodes"]
            if about["evaluated_success"] is not None:
                found[f"curriculum/{name}/evaluated_success"] = about["evaluated_success"]
        return found

    def state_dict(self) -> dict[str, Plain]:
        """Return plain data, exact to the last bit."""
        return {
            "version": STATE_VERSION,
            "lessons": {
                name: {
                    "state": self.states[name],
                    "training": self.training[name].state_dict(),
                    "evaluation": self.evaluation[name].state_dict(),
                }
                for name in self.lessons
            },
            "changes": [asdict(change) for change in self.changes],
        }

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on from a saved curriculum of the same lessons."""
        if saved.get("version") != STATE_VERSION:
            raise HookStateError(
                f"The saved curriculum has version {saved.get('version')!r}; this hookloop reads {STATE_VERSION}."
            )
        lessons = saved["lessons"]
        if list(lessons) != list(self.lessons):
            raise HookStateError(
                f"The saved curriculum has the lessons {', '.join(lessons)}; here they are {', '.join(self.lessons)}. "
                "Go on with the lessons the run began with, or begin a new run."
            )
        for name, kept in lessons.items():
            if kept["state"] not in STATE_NUMBERS:
                raise HookStateError(f"The saved lesson {name!r} has the state {kept['state']!r}, which there is not.")
            self.states[name] = kept["state"]
            self.training[name].load_state_dict(kept["training"])
            self.evaluation[name].load_state_dict(kept["evaluation"])
        self.changes = [LessonChange(**change) for change in saved["changes"]]

    def _mastery(self) -> float:
        known = [each.success for each in self.training.values() if each.episodes >= self.config.minimum_episodes]
        return math.fsum(known) / len(self.lessons)

    def _fresh(self) -> LessonStats:
        config = self.config
        return LessonStats(
            alpha=config.success_alpha,
            prior=config.success_prior,
            window=config.plateau_window,
            point_episodes=config.plateau_episodes,
        )

    def _open(self) -> None:
        """Unlock what may be unlocked, in order."""
        for name, state in self.states.items():
            if state == "locked":
                reasons = self._reasons_to_open(name)
                if reasons is not None:
                    self._change(name, "unlocked", reasons)

    def _reasons_to_open(self, name: str) -> str | None:
        if self.config.strategy == "uniform":
            return "all lessons are open from the start"
        lesson = self.lessons[name]
        reasons: list[str] = []
        for dependency in lesson.dependencies:
            before = dependency.lesson
            stats = self.training[before]
            threshold = lesson.start_threshold if dependency.threshold is None else dependency.threshold
            is_known = self.states[before] != "locked" and stats.episodes >= self.config.minimum_episodes
            if not is_known or stats.success < threshold:
                return None
            reasons.append(f"{before} succeeds {stats.success:.2f}, {threshold:.2f} is asked")
        return "; ".join(reasons) or "it depends on no other lesson"

    def _judge(self, name: str) -> None:
        config, lesson, found = self.config, self.lessons[name], self.evaluation[name].success
        course, lowest = self.training[name].history, lesson.stop_threshold - config.regression_margin
        state = self.states[name]
        if state == "graduated" and found < lowest:
            self._change(name, "regressed", f"evaluated at {found:.2f}, below {lowest:.2f}")
        is_flat = has_plateaued(course, window=config.plateau_window, threshold=config.plateau_threshold)
        if state in ("unlocked", "regressed") and found >= lesson.stop_threshold and is_flat:
            why = f"evaluated at {found:.2f}, {lesson.stop_threshold:.2f} is asked, and training has levelled off"
            self._change(name, "graduated", why)

    def _change(self, name: str, to: Literal["unlocked", "graduated", "regressed"], why: str) -> None:
        self.states[name] = to
        self.changes.append(LessonChange(name, to, why))

    def _summary_of(self, name: str, probability: float) -> dict[str, Plain]:
        training = self.training[name]
        return {
            "state": self.states[name],
            "success": training.success,
            "evaluated_success": self.evaluated_success(name),
            "mean_return": training.mean_return,
            "episodes": training.episodes,
            "probability": probability,
        }

    def _require(self, lesson: str) -> None:
        if lesson not in self.lessons:
            raise UnknownNameError("lesson", lesson, self.lessons, where="in the curriculum")
