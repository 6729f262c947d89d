"""Evaluations: named tasks, how their episodes are scored, and what a result is. Who plays is the workload's matter.

The names are imported when they are first used: the statistics need numpy, a configuration does not.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

_HOMES = {
    "EpisodeRecord": "hookloop.evaluation.results",
    "Estimate": "hookloop.evaluation.statistics",
    "EvaluationResult": "hookloop.evaluation.results",
    "EvaluationTask": "hookloop.evaluation.tasks",
    "LessonScore": "hookloop.evaluation.results",
    "Played": "hookloop.evaluation.results",
    "PlayedEpisode": "hookloop.evaluation.results",
    "Player": "hookloop.evaluation.tasks",
    "Score": "hookloop.evaluation.results",
    "Wanted": "hookloop.evaluation.tasks",
    "estimates": "hookloop.evaluation.statistics",
    "evaluate": "hookloop.evaluation.evaluator",
    "kept_global_random": "hookloop.evaluation.evaluator",
}

__all__ = [
    "EpisodeRecord",
    "Estimate",
    "EvaluationResult",
    "EvaluationTask",
    "LessonScore",
    "Played",
    "PlayedEpisode",
    "Player",
    "Score",
    "Wanted",
    "estimates",
    "evaluate",
    "kept_global_random",
]

if TYPE_CHECKING:
    from hookloop.evaluation.evaluator import evaluate, kept_global_random
    from hookloop.evaluation.results import EpisodeRecord, EvaluationResult, LessonScore, Played, PlayedEpisode, Score
    from hookloop.evaluation.statistics import Estimate, estimates
    from hookloop.evaluation.tasks import EvaluationTask, Player, Wanted


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
