"""One line of progress per interval: stable keys, made to be read, piped and searched."""

from __future__ import annotations

import sys
from typing import Literal, TextIO

from hookloop.core import Every, HookContext
from hookloop.core.clocks import ENV_STEPS
from hookloop.display import json_line, plain_line
from hookloop.errors import RegistrationError
from hookloop.hooks.run_views import RunViews

Style = Literal["plain", "json"]

_LINES = {"plain": plain_line, "json": json_line}


class ProgressHook:
    """Write where the run is, every ``interval_seconds``.

    What stands in ``ctx.state.pending_progress_updates`` is written, too, and taken out once that has succeeded.

    Args:
        interval_seconds: Seconds of training between two lines.
        style: ``plain`` for people and grep, ``json`` for programs.
        total_steps: What the run is going for, to show how far it is.
        clock: What a step is: a clock such as ``env_steps``.
        output: Where to write; the standard output by default.
    """

    stage = "publish"
    on_error = "disable"

    def __init__(
        self,
        interval_seconds: float = 1.0,
        style: Style = "plain",
        total_steps: int | None = None,
        clock: str = ENV_STEPS,
        *,
        output: TextIO | None = None,
    ) -> None:
        if style not in _LINES:
            raise RegistrationError(f"A progress line is 'plain' or 'json', got {style!r}.")
        self.interval_seconds = interval_seconds
        self.style = style
        self.total_steps = total_steps
        self.clock = clock
        self.schedule = {"epoch_end": Every(interval_seconds, "seconds")}
        self._output = output
        self._views = RunViews(total_steps, clock)

    def on_training_start(self, ctx: HookContext) -> None:
        """Take the speed from here."""
        self._views.begin(ctx)

    def on_evaluation_end(self, ctx: HookContext) -> None:
        """Remember the step of the scores."""
        self._views.note_evaluation(ctx)

    def on_epoch_end(self, ctx: HookContext) -> None:
        """Write a line."""
        self._views.note_epoch(ctx)
        updates = dict(ctx.state.pending_progress_updates)
        output = self._output if self._output is not None else sys.stdout
        output.write(_LINES[self.style](self._views.view(ctx, notes=updates)) + "\n")
        output.flush()
        take_out(ctx, updates)


def take_out(ctx: HookContext, flushed: dict[str, object]) -> None:
    """Take what has been shown out of the pending updates; what has changed meanwhile is still to be shown."""
    pending = ctx.state.pending_progress_updates
    for name, value in flushed.items():
        if name in pending and pending[name] is value:
            del pending[name]
