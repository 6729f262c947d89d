"""The evaluations that the settings of a curriculum ask for, as arguments of the hook that carries them out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookloop.errors import ConfigError

MAIN = "eval"
"""What the evaluation is called whose scores stand in the state without its name before them."""
MICRO = "micro_eval"
MICRO_FREQUENCY, MICRO_EXAMPLES = 10, 4
FULL_FREQUENCY, FULL_EXAMPLES = 100, 64


def default_evaluations(config: object) -> list[dict[str, Any]]:
    """Return the arguments of an ``EvaluationHook`` for each evaluation: a micro one and a full one, unless left out.

    Args:
        config: Has, by attribute or key, ``micro_eval_frequency`` (10) and ``micro_eval_n_examples`` (4), of the
            current lesson, which the curriculum is not told of; ``eval_frequency`` (100) and ``eval_n_examples`` (64),
            of all lessons, which it is told of. A frequency of None, or not above 0, leaves that evaluation out.
    """
    micro = _number(config, "micro_eval_frequency", MICRO_FREQUENCY)
    full = _number(config, "eval_frequency", FULL_FREQUENCY)
    found: list[dict[str, Any]] = []
    if micro is not None:
        examples = _number(config, "micro_eval_n_examples", MICRO_EXAMPLES) or MICRO_EXAMPLES
        found.append(_arguments(micro, examples, MICRO, evaluate_all_lessons=False))
    if full is not None:
        examples = _number(config, "eval_n_examples", FULL_EXAMPLES) or FULL_EXAMPLES
        found.append(_arguments(full, examples, MAIN, evaluate_all_lessons=True))
    return found


def _arguments(frequency: int, n_examples: int, eval_type: str, *, evaluate_all_lessons: bool) -> dict[str, Any]:
    return {
        "frequency": frequency,
        "n_examples": n_examples,
        "eval_type": eval_type,
        "evaluate_all_lessons": evaluate_all_lessons,
    }


def _number(config: object, name: str, default: int) -> int | None:
    """Return a number of a curriculum's configuration; None if it is None or not above 0."""
    value: Any = config.get(name, default) if isinstance(config, Mapping) else getattr(config, name, default)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise ConfigError(f"{name} must be a whole number, got {value!r}; None or 0 switches the evaluation off.")
    return value if value is not None and value > 0 else None
