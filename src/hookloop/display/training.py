"""A display for loops of your own: begin it, tell it where you are, and it is shown as often as it should be."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from types import TracebackType
from typing import Self

from rich.console import Console

from hookloop.display.live import LiveDisplay
from hookloop.display.pace import Pace
from hookloop.display.sparkline import History
from hookloop.display.view import Curve, RunView
from hookloop.errors import RegistrationError

THROTTLE_SECONDS = 0.2


class TrainingDisplay:
    """Shows the progress of a training loop on a terminal.

    Args:
        about: What the run is: a view with its name and whatever else is known.
        console: Where to draw; the standard output by default.
        throttle_seconds: Updates that come sooner after the last one that was shown wait for the next.
        render_every_steps: Updates that come within so many steps of the last one that was shown wait, too.
        clock: Seconds, for speed and throttle.
    """

    def __init__(
        self,
        about: RunView | None = None,
        *,
        console: Console | None = None,
        throttle_seconds: float = THROTTLE_SECONDS,
        render_every_steps: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if render_every_steps < 1:
            raise RegistrationError(f"render_every_steps must be at least 1 step, got {render_every_steps!r}.")
        self.live = LiveDisplay(console, clock=clock)
        self._about = about if about is not None else RunView()
        self._throttle_seconds = throttle_seconds
        self._render_every_steps = render_every_steps
        self._clock = clock
        self._began = clock()
        self._pace = Pace()
        self._curves: dict[str, History] = {}
        self._notes: dict[str, object] = {}
        self._view: RunView | None = None
        self._shown: tuple[float, int] | None = None

    def get_context_manager(self) -> AbstractContextManager[Self]:
        """Return what has the terminal for the length of a ``with`` block: the display itself."""
        return self

    def __enter__(self) -> Self:
        self._began = self._clock()
        self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._view is not None and self.live.is_running:
            ended = "completed" if error is None else "interrupted" if kind is KeyboardInterrupt else "failed"
            self.live.publish(replace(self._view, status=ended, elapsed_seconds=self._clock() - self._began))
        self.live.stop()

    def update_progress(
        self, current_step: int, total_steps: int | None = None, completed_episodes: int = 0, **updates: object
    ) -> bool:
        """Tell where the run is, and show it if it is time.

        Numbers among ``updates`` become curves; anything else is shown as it is.

        Returns:
            Whether this was handed over to be drawn. If not, keep what you wanted shown for the next call.
        """
        now = self._clock()
        if not self._is_due(now, current_step, total_steps):
            return False
        elapsed = now - self._began
        self._pace.add(elapsed, current_step)
        self._take(updates)
        self._view = replace(
            self._about,
            step=current_step,
            total_steps=total_steps,
            episodes=completed_episodes,
            elapsed_seconds=elapsed,
            steps_per_second=self._pace.speed(),
            eta_seconds=self._pace.eta_seconds(total_steps),
            curves={name: Curve(history.latest, history.points()) for name, history in self._curves.items()},
            notes=dict(self._notes),
        )
        self.live.publish(self._view)
        self._shown = now, current_step
        return True

    def _is_due(self, now: float, step: int, total_steps: int | None) -> bool:
        if self._shown is None or step == total_steps:  # the first and the last are always shown
            return True
        seconds, shown_step = self._shown
        return now - seconds >= self._throttle_seconds and step - shown_step >= self._render_every_steps

    def _take(self, updates: dict[str, object]) -> None:
        for name, value in updates.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                self._curves.setdefault(name, History()).add(value)
            else:
                self._notes[name] = value
