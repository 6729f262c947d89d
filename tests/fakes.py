"""Small stand-ins that tests share."""

from __future__ import annotations

from hookloop.core import HookContext


class Recorder:
    """Records the events it is called on, with the reading of one clock."""

    def __init__(self, clock: str = "epochs") -> None:
        self._clock = clock
        self.calls: list[tuple[str, float]] = []

    def on_epoch_end(self, ctx: HookContext) -> None:
        self.calls.append((ctx.event, ctx.readings[self._clock]))


class Failing:
    """Fails on each epoch's end, a limited number of times if told so."""

    def __init__(self, times: int | None = None, error: Exception | None = None) -> None:
        self.times = times
        self.calls = 0
        self._error = error

    def on_epoch_end(self) -> None:
        self.calls += 1
        if self.times is None or self.calls <= self.times:
            raise self._error if self._error is not None else OSError("disk full")
