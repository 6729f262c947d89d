"""The ways in which an evaluation is asked for: settings, a task, a frequency, or the numbers of a curriculum."""

from __future__ import annotations

from collections.abc import Mapping

from hookloop.core import Every
from hookloop.errors import ConfigError, RegistrationError
from hookloop.evaluation.tasks import EvaluationTask


def task_of(eval_config: object, eval_type: str) -> EvaluationTask | None:
    """Return what is asked for by a task, by settings, or by a mapping of them; None if nothing is."""
    if eval_config is None:
        return None
    if isinstance(eval_config, EvaluationTask):
        return eval_config
    from pydantic import ValidationError  # a quarter of the time that the import of all hooks takes

    from hookloop.config.settings import EvaluationConfig

    if isinstance(eval_config, Mapping):
        try:
            eval_config = EvaluationConfig.model_validate(dict(eval_config))
        except ValidationError as error:
            raise ConfigError(f"The settings of an evaluation mean nothing: {error}") from error
    if not isinstance(eval_config, EvaluationConfig):
        raise RegistrationError(
            f"An EvaluationHook takes an EvaluationConfig, an EvaluationTask or a mapping, got {eval_config!r:.100}."
        )
    if eval_config.schedule is None:
        return None
    options = eval_config.model_dump(exclude={"where", "keep_replays"})
    return EvaluationTask(name=eval_type, **options)


def periodic_task(
    frequency: int,
    n_examples: int,
    eval_type: str,
    *,
    evaluate_all_lessons: bool,
    start_step: int,
    updates_curriculum: bool | None,
) -> EvaluationTask:
    """Return a task in the words of a rollout worker: a full evaluation of all lessons, or of the current one."""
    return EvaluationTask(
        name=eval_type,
        schedule=Every(frequency, start=start_step),
        episodes=n_examples,
        scope="lessons" if evaluate_all_lessons else "lesson",
        updates_curriculum=evaluate_all_lessons if updates_curriculum is None else updates_curriculum,
    )
