"""The live display: a thread that draws the newest view of a run, a few times per second at most."""

from __future__ import annotations

import atexit
import logging
import os
import select
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace

from rich.cells import cell_len
from rich.console import Console
from rich.control import Control
from rich.live import Live
from rich.segment import ControlType

from hookloop.boards import GameView
from hookloop.core.signals import before_leaving
from hookloop.display.canvas import ASCII, UNICODE, Canvas, Line
from hookloop.display.panel import HINT, draw
from hookloop.display.streams import logging_through
from hookloop.display.view import RunView
from hookloop.errors import DisplayError, RegistrationError

log = logging.getLogger("hookloop.display")

MOST_PER_SECOND = 4.0
_STOP_SECONDS = 2.0
_ECHO = "^C"  # the terminal writes it wherever the cursor is, also within a line; a full one would become two
_CURSOR_BACK = b"\x1b[?25h\r\n"


def can_draw(console: Console | None = None) -> bool:
    """Tell whether there is a terminal to draw on: one that is looked at, and can move its cursor."""
    found = console if console is not None else Console()
    return found.is_terminal and not found.is_dumb_terminal and found.file.isatty()


class LiveDisplay:
    """Draws a run on a terminal, from a thread of its own, so that nobody waits for the terminal.

    What is printed or logged meanwhile appears above the panel. ``stop`` draws a last time, leaves the panel where it
    is, and gives the terminal back; so does the end of the process. A terminal that is gone ends the display, for
    good, and nothing else.

    Args:
        console: Where to draw; the standard output by default.
        per_second: How often to draw at most; up to 4. When nothing has changed, nothing is drawn.
        look: The step that the run has reached by now, if it can be read from another thread.
        look_at_game: The game that is played by now, likewise; asked only when something is drawn.
        hint: What the keys do.
        clock: Seconds, for times that tick on between two views.
    """

    def __init__(
        self,
        console: Console | None = None,
        *,
        per_second: float = MOST_PER_SECOND,
        look: Callable[[], int] | None = None,
        look_at_game: Callable[[], GameView] | None = None,
        hint: str = HINT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not 0 < per_second <= MOST_PER_SECOND:
            raise RegistrationError(
                f"A display draws at most {MOST_PER_SECOND:g} times per second, got per_second={per_second!r}."
            )
        self.console = console if console is not None else Console()
        self.look = look
        self.look_at_game = look_at_game
        self._interval_seconds = 1.0 / per_second
        self._hint = hint
        self._clock = clock
        self._glyphs = ASCII if self.console.options.ascii_only else UNICODE
        self._newest: tuple[int, RunView, float] | None = None
        self._published = self._drawn = 0
        self._error: Exception | None = None
        self._canvas = Canvas([])
        self._size = (0, 0)
        self._wakes = threading.Event()
        self._thread: threading.Thread | None = None
        self._open = ExitStack()
        self._live: Live | None = None
        self.cpu_seconds = 0.0

    @property
    def is_running(self) -> bool:
        """Whether the display has the terminal."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Take the terminal; nothing happens if the display has it, or has lost it for good."""
        if self._thread is not None or self._error is not None:
            return
        self._wakes.clear()
        self._live = Live(
            Canvas([]),
            console=self.console,
            auto_refresh=False,
            redirect_stdout=sys.stdout.isatty(),
            redirect_stderr=sys.stderr.isatty(),  # what goes to a file shall stay there
            vertical_overflow="crop",
        )
        before = (sys.stdout, sys.stderr)
        self._open.callback(self._live.stop)
        self._live.start()
        self._open.enter_context(logging_through(before))
        atexit.register(self.stop)
        self._open.callback(atexit.unregister, self.stop)
        self._open.callback(before_leaving(self._show_cursor))
        self._thread = threading.Thread(target=self._run, name="hookloop-display", daemon=True)
        self._thread.start()

    def publish(self, view: RunView) -> int:
        """Let a view be the one that is drawn, and return its number, for ``has_drawn``."""
        if self._error is not None:
            raise DisplayError(f"The terminal cannot be drawn on any more: {self._error}.") from self._error
        self._published += 1
        self._newest = self._published, view, self._clock()
        return self._published

    def has_drawn(self, number: int) -> bool:
        """Tell whether the view of this number, or a later one, is on the terminal."""
        return self._drawn >= number

    def stop(self) -> None:
        """Draw the newest view, and give the terminal back; nothing happens if the display does not have it."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._wakes.set()
        thread.join(_STOP_SECONDS)
        if self._error is None:
            self._draw_safely(is_last=True)
        self._give_back()

    def _run(self) -> None:
        while self._error is None:
            self._draw_safely()
            self.cpu_seconds = time.thread_time()
            if self._wakes.wait(self._interval_seconds):
                return
        self._give_back()

    def _draw_safely(self, *, is_last: bool = False) -> None:
        try:
            self._draw(is_last=is_last)
        except (OSError, ValueError) as error:  # the terminal is gone, or its file is closed
            self._error = error

    def _draw(self, *, is_last: bool) -> None:
        if self._newest is None or self._live is None:
            return
        number, view, published = self._newest
        look = self.look
        width, height = self.console.size
        now = view.ticked(self._clock() - published, None if look is None else look())
        if self.look_at_game is not None:
            now = replace(now, game=self.look_at_game())
        canvas = draw(now, max(width - len(_ECHO), 1), height, self._glyphs, self._hint)
        if not is_last:
            canvas.lines.append(Line().add(" "))  # for the cursor
        if (width, height) != self._size or canvas != self._canvas:
            self._make_room(width)
            self._live.update(canvas, refresh=True)
            self._canvas, self._size = canvas, (width, height)
        self._drawn = number

    def _make_room(self, width: int) -> None:
        """Clear what a narrower terminal has made of the lines that are there: each takes several now."""
        if not 0 < width < self._size[0]:
            return
        lines = self._canvas.lines
        rows = sum(max(-(-cell_len(line.text.rstrip()) // width), 1) for line in lines)
        if rows > len(lines):
            up, down = (ControlType.CURSOR_UP, rows - 1), (ControlType.CURSOR_DOWN, len(lines) - 1)
            erase = [(ControlType.ERASE_IN_LINE, 2), (ControlType.CURSOR_DOWN, 1)] * (rows - 1)
            self.console.control(Control(up, *erase, (ControlType.CURSOR_UP, rows - 1), down))

    def _give_back(self) -> None:
        try:
            self._open.close()
        except (OSError, ValueError) as error:
            self._error = error
        if self._error is not None and self._live is not None:
            log.warning("the display ended, and the run goes on: %s", self._error)
        self._live = None

    def _show_cursor(self) -> None:
        """Leave a usable terminal behind, without a lock, and without waiting for a terminal that is held."""
        with suppress(OSError, ValueError):
            descriptor = self.console.file.fileno()
            if select.select([], [descriptor], [], 0)[1]:
                os.write(descriptor, _CURSOR_BACK)
