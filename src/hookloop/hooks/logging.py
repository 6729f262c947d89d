"""A line in the log now and then."""

from __future__ import annotations

import logging

from hookloop.core import HookContext, PeriodicHook

log = logging.getLogger("hookloop.hooks.logging")


class LoggingHook(PeriodicHook):
    """Log where the run is, every ``frequency`` steps."""

    on_error = "disable"

    def __init__(self, frequency: int = 100, start_step: int = 0) -> None:
        super().__init__(frequency, start_step)

    def run(self, context: HookContext) -> None:
        """Write one line: the clocks that move, the lesson, and the latest metrics."""
        counted = {name: value for name, value in context.readings.items() if value and name != "seconds"}
        lesson = {} if context.lesson_id is None else {"lesson": context.lesson_id}
        parts = {**counted, **lesson, **context.metrics}
        log.info("%s", " ".join(f"{name}={_short(value)}" for name, value in parts.items()))


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
