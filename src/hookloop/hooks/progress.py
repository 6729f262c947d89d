"""One line of progress per interval: stable keys, made to be read, piped and searched."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Literal, TextIO

from hookloop.core import Every, HookContext
from hookloop.errors import RegistrationError

Style = Literal["plain", "json"]


class ProgressHook:
    """Write where the run is, every ``interval_seconds``.

    Args:
        interval_seconds: Seconds of training between two lines.
        style: ``plain`` for people and grep, ``json`` for programs.
        total_env_steps: What the run is going for, to show how far it is.
        output: Where to write; the standard output by default.
    """

    stage = "publish"
    on_error = "disable"

    def __init__(
        self,
        interval_seconds: float = 1.0,
        style: Style = "plain",
        total_env_steps: int | None = None,
        *,
        output: TextIO | None = None,
    ) -> None:
        if style not in ("plain", "json"):
            raise RegistrationError(f"A progress line is 'plain' or 'json', got {style!r}.")
        self.interval_seconds = interval_seconds
        self.style = style
        self.total_env_steps = total_env_steps
        self.schedule = Every(interval_seconds, "seconds")
        self._output = output
        self._last: tuple[float, float] = (0.0, 0)

    def on_training_start(self, ctx: HookContext) -> None:
        """Take the speed from here."""
        self._last = ctx.state.clocks.seconds, ctx.state.clocks.env_steps

    def on_epoch_end(self, ctx: HookContext) -> None:
        """Write a line."""
        self._write(self._fields(ctx))

    def _fields(self, ctx: HookContext) -> dict[str, object]:
        clocks = ctx.state.clocks
        seconds, steps = clocks.refresh_seconds(), clocks.env_steps
        speed = (steps - self._last[1]) / max(seconds - self._last[0], 1e-9)
        self._last = seconds, steps
        goal = f"/{self.total_env_steps}" if self.total_env_steps else ""
        fields: dict[str, object] = {
            "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "step": f"{steps}{goal}" if self.style == "plain" else steps,
            "epoch": clocks.epochs,
            "sps": round(speed),
        }
        if self.style == "json" and self.total_env_steps:
            fields["total_steps"] = self.total_env_steps
        return {**fields, **ctx.metrics}

    def _write(self, fields: dict[str, object]) -> None:
        output = self._output if self._output is not None else sys.stdout
        if self.style == "json":
            output.write(json.dumps(fields) + "\n")
        else:
            when = fields.pop("time")
            output.write(f"{when} " + " ".join(f"{name}={_short(value)}" for name, value in fields.items()) + "\n")
        output.flush()


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
