"""``hookloop watch``: look at a run that another process trains."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from hookloop.cli.exit_codes import EXIT_DONE
from hookloop.display import LiveDisplay, RunView, can_draw, json_line, plain_line
from hookloop.errors import ConfigError
from hookloop.runs.folder import find_run
from hookloop.runs.watched_run import STARTING, WatchedRun

_HINT = "q leaves, and the run goes on"
_LEAVE = b"q"


def watch(
    run: str,
    *,
    interval_seconds: float = 1.0,
    once: bool = False,
    json: bool = False,
    runs_dir: Path = Path("runs"),
) -> int:
    """Show a run live, from another shell, until it ends; q or Ctrl-C leaves, and the run goes on.

    Args:
        run: The run's name, or its path.
        interval_seconds: Seconds between two looks.
        once: Show the run as it is now, and stop.
        json: Write one JSON object per look; without it, and without a terminal, one line.
        runs_dir: The folder of all runs.
    """
    if interval_seconds < 0.1:
        raise ConfigError(f"--interval-seconds must be at least 0.1, got {interval_seconds}.")
    watched = WatchedRun(find_run(runs_dir, run))
    try:
        if json or not can_draw():
            _write_lines(watched, interval_seconds, json_line if json else plain_line, once=once)
        else:
            _draw(watched, interval_seconds, once=once)
    except KeyboardInterrupt:
        pass  # leaving is how watching ends
    finally:
        watched.close()
    return EXIT_DONE


def _write_lines(watched: WatchedRun, interval_seconds: float, line: Callable[[RunView], str], *, once: bool) -> None:
    while True:
        view = watched.view()
        sys.stdout.write(line(view) + "\n")
        sys.stdout.flush()
        if once or not _is_on(view):
            return
        time.sleep(interval_seconds)


def _draw(watched: WatchedRun, interval_seconds: float, *, once: bool) -> None:
    display = LiveDisplay(hint=_HINT)
    with _keys() as wait_for_key:
        try:
            while True:
                view = watched.view()
                display.publish(view)
                display.start()
                if once or not _is_on(view) or wait_for_key(interval_seconds) == _LEAVE:
                    return
        finally:
            display.stop()


def _is_on(view: RunView) -> bool:
    return view.is_ticking or view.status == STARTING


@contextmanager
def _keys() -> Generator[Callable[[float], bytes]]:
    """Yield what waits for a key; keys come at once and are not shown, and the terminal is put back afterwards."""
    if not sys.stdin.isatty():
        yield _no_key
        return
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)

    def wait_for_key(seconds: float) -> bytes:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if select.select([descriptor], [], [], left)[0]:
                key = os.read(descriptor, 1)
                if key in (_LEAVE, b""):
                    return _LEAVE
        return b""

    try:
        tty.setcbreak(descriptor)
        yield wait_for_key
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _no_key(seconds: float) -> bytes:
    time.sleep(seconds)
    return b""
