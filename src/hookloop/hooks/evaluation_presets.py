"""The evaluations that a configuration asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hookloop.errors import ConfigError
from hookloop.evaluation.defaults import default_evaluations
from hookloop.evaluation.tasks import Curriculum
from hookloop.hooks.evaluation import EvaluationHook
from hookloop.hooks.evaluation_report import ReplaySink
from hookloop.hooks.remote_evaluation import RemoteEvaluationHook

if TYPE_CHECKING:
    from hookloop.config.settings import EvaluationConfig
    from hookloop.stats import EvaluationTasks


def create_default_evaluation_hooks(config: object, curriculum: Curriculum | None = None) -> list[EvaluationHook]:
    """Return the evaluations that the configuration of a curriculum asks for.

    Args:
        config: Has, by attribute or key, ``micro_eval_frequency`` (10) and ``micro_eval_n_examples`` (4), of the
            current lesson, which the curriculum is not told of; ``eval_frequency`` (100) and ``eval_n_examples`` (64),
            of all lessons, which it is told of. A frequency of None, or not above 0, leaves that evaluation out.
        curriculum: Where lessons come from; the trainer's or worker's own by default.
    """
    return [EvaluationHook(curriculum=curriculum, **asked) for asked in default_evaluations(config)]


def evaluation_hooks(
    config: EvaluationConfig,
    curriculum: Curriculum | None = None,
    *,
    replays: ReplaySink | None = None,
    open_tasks: Callable[[], EvaluationTasks] | None = None,
) -> list[EvaluationHook | RemoteEvaluationHook]:
    """Return the evaluation that the settings of a run ask for; none if its schedule is null.

    Args:
        config: The settings.
        curriculum: Where lessons come from, if there is one.
        replays: Takes recorded episodes.
        open_tasks: Opens the tasks of the run's statistics, which an evaluation by workers needs.
    """
    if config.schedule is None:
        return []
    hook = EvaluationHook(config, curriculum, background=config.where == "background", replays=replays)
    if config.where != "worker":
        return [hook]
    if open_tasks is None:
        raise ConfigError("evaluation.where=worker needs statistics to put the tasks in, and this run has none.")
    return [RemoteEvaluationHook(hook, open_tasks, suite="all" if config.suite else "training")]
