"""A program in a real pseudo-terminal, as a person has it before them."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

from tests.screen import Screen
from tests.waiting import PATIENCE_SECONDS


class Session:
    """A program in a pseudo-terminal of some size, and what stands on it."""

    def __init__(self, *words: str, width: int, height: int, cwd: Path, **environment: str) -> None:
        self.screen = Screen(width, height)
        self._descriptor, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        settings = termios.tcgetattr(theirs)
        settings[3] |= termios.NOFLSH  # Ctrl-C drops nothing that was written and not read here yet
        termios.tcsetattr(theirs, termios.TCSANOW, settings)
        clean = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hookloop", *words],
            stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd, start_new_session=True,
            env={**clean, "TERM": "xterm-256color", "PYTHONUNBUFFERED": "1", **environment},
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that Ctrl-C reaches it
        )  # fmt: skip
        os.close(theirs)
        self._pending = b""

    def read(self, seconds: float = 0.0) -> bool:
        """Take in what was written; tell whether there can be more."""
        if not select.select([self._descriptor], [], [], seconds)[0]:
            return True
        try:
            found = os.read(self._descriptor, 65536)
        except OSError:  # how Linux says that nobody holds the other side any more
            return False
        self._pending += found
        text = self._pending.decode("utf-8", errors="ignore")
        whole = re.match(r"(?s).*(?<!\x1b)(?:\n|\x1b\[[0-9;?]*[A-Za-z])", text)  # a cut sequence waits for its rest
        if whole is not None:
            self.screen.write(whole[0])
            self._pending = self._pending[len(whole[0].encode()) :]
        return bool(found)

    def wait_until(self, is_so: Callable[[], object], *, meanwhile: Session | None = None) -> None:
        """Read until something is to be seen, and what another program writes meanwhile, as its terminal would."""
        until = time.monotonic() + PATIENCE_SECONDS
        while not is_so():
            assert self.read(0.02), f"the program ended:\n{self.screen.text}"
            assert meanwhile is None or meanwhile.read(0.02), f"the other program ended:\n{meanwhile.screen.text}"
            assert time.monotonic() < until, self.screen.text

    @property
    def prompt(self) -> str:
        """What was written after the last whole line."""
        return self._pending.decode("utf-8", errors="ignore")

    def press(self, keys: bytes) -> None:
        os.write(self._descriptor, keys)

    def end(self, *, meanwhile: Session | None = None) -> int:
        """Read to the end, and return the exit code."""
        until = time.monotonic() + PATIENCE_SECONDS
        while self.read(0.02):
            assert meanwhile is None or meanwhile.read(0.02), f"the other program ended:\n{meanwhile.screen.text}"
            assert time.monotonic() < until, self.screen.text
        self.screen.write(self._pending.decode("utf-8", errors="replace"))
        return self.process.wait(PATIENCE_SECONDS)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._descriptor)
