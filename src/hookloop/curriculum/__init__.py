"""Lessons and the curriculum that chooses among them: what is open, what is mastered, what to train next.

Arithmetic alone: the standard library, no environments and no files. Who trains asks ``probabilities()`` or
``allot(...)`` what to train and tells ``update_from_training`` and ``update_from_evaluation`` how it went.
"""

from hookloop.curriculum.config import CurriculumConfig, Dependency, Lesson, LessonEnv
from hookloop.curriculum.curriculum import Curriculum, LessonChange
from hookloop.curriculum.plateau import has_plateaued, slope_p_value
from hookloop.curriculum.stats import EvaluationStats, LessonStats
from hookloop.curriculum.weights import allot, learning_weight, with_floor

__all__ = [
    "Curriculum",
    "CurriculumConfig",
    "Dependency",
    "EvaluationStats",
    "Lesson",
    "LessonChange",
    "LessonEnv",
    "LessonStats",
    "allot",
    "has_plateaued",
    "learning_weight",
    "slope_p_value",
    "with_floor",
]
