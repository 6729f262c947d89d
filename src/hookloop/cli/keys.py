"""Single keys from a terminal, without the Enter."""

from __future__ import annotations

import os
import select
import termios
import tty
from typing import Any, Self, TextIO

ARROWS = {b"\x1b[C": "right", b"\x1b[D": "left", b"\x1bOC": "right", b"\x1bOD": "left"}
SEQUENCE_SECONDS = 0.05


class Keys:
    """Reads keys; the terminal is as it was once this is left, whatever happens."""

    def __init__(self, terminal: TextIO) -> None:
        self._descriptor = terminal.fileno()
        self._before: list[Any] = []

    def __enter__(self) -> Self:
        self._before = termios.tcgetattr(self._descriptor)
        tty.setcbreak(self._descriptor)
        return self

    def __exit__(self, *_: object) -> None:
        termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._before)

    def read(self) -> str:
        """Return a letter, the name of an arrow, or nothing if the terminal is gone."""
        read = os.read(self._descriptor, 1)
        # The bytes of an arrow come together; an Escape that stands alone is a key of its own.
        while read[:1] == b"\x1b" and len(read) < 3 and select.select([self._descriptor], [], [], SEQUENCE_SECONDS)[0]:
            read += os.read(self._descriptor, 1)
        return ARROWS.get(read, read.decode(errors="replace"))
