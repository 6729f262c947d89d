"""The evaluations that a configuration asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hookloop.errors import ConfigError
from hookloop.evaluation.tasks import Curriculum
from hookloop.hooks.evaluation import EvaluationHook
from hookloop.hooks.evaluation_forms import FULL_EXAMPLES, FULL_FREQUENCY, MAIN
from hookloop.hooks.evaluation_report import ReplaySink
from hookloop.hooks.remote_evaluation import RemoteEvaluationHook

if TYPE_CHECKING:
    from hookloop.config.settings import EvaluationConfig
    from hookloop.stats import EvaluationTasks

MICRO_FREQUENCY, MICRO_EXAMPLES = 10, 4


def create_default_evaluation_hooks(config: object, curriculum: Curriculum | None = None) -> list[EvaluationHook]:
    """Return the evaluations that the configuration of a curriculum asks for.

    Args:
        config: Has, by attribute or key, ``micro_eval_frequency`` (10) and ``micro_eval_n_examples`` (4), of the
            current lesson, which the curriculum is not told of; ``eval_frequency`` (100) and ``eval_n_examples`` (64),
            of all lessons, which it is told of. A frequency of None, or not above 0, leaves that evaluation out.
        curriculum: Where lessons come from; the trainer's or worker's own by default.
    """
    micro = _number(config, "micro_eval_frequency", MICRO_FREQUENCY)
    full = _number(config, "eval_frequency", FULL_FREQUENCY)
    found: list[EvaluationHook] = []
    if micro is not None:
        examples = _number(config, "micro_eval_n_examples", MICRO_EXAMPLES)
        found.append(_periodic(micro, examples or MICRO_EXAMPLES, "micro_eval", curriculum, is_full=False))
    if full is not None:
        examples = _number(config, "eval_n_examples", FULL_EXAMPLES)
        found.append(_periodic(full, examples or FULL_EXAMPLES, MAIN, curriculum, is_full=True))
    return found


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


def _periodic(
    frequency: int, n_examples: int, eval_type: str, curriculum: Curriculum | None, *, is_full: bool
) -> EvaluationHook:
    return EvaluationHook(
        curriculum=curriculum, frequency=frequency, n_examples=n_examples, eval_type=eval_type,
        evaluate_all_lessons=is_full,
    )  # fmt: skip


def _number(config: object, name: str, default: int) -> int | None:
    """Return a number of a curriculum's configuration; None if it is None or not above 0."""
    value: Any = config.get(name, default) if isinstance(config, Mapping) else getattr(config, name, default)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise ConfigError(f"{name} must be a whole number, got {value!r}; None or 0 switches the evaluation off.")
    return value if value is not None and value > 0 else None
