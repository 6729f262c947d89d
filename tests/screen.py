"""A terminal for tests: what a person sees after a program has written to it."""

from __future__ import annotations

import re

_PIECE = re.compile(r"\x1b\[(?P<codes>[0-9;?]*)(?P<verb>[A-Za-z])|(?P<letter>.)", re.DOTALL)


class Screen:
    """Lines of letters, with a cursor; it knows what a display of lines needs, and refuses anything else."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.is_cursor_shown = True
        self.unknown: list[str] = []
        self._rows: list[list[str]] = [[]]
        self._row = self._column = 0

    @property
    def lines(self) -> list[str]:
        """Everything that was written and not erased, scrolled away or not."""
        return ["".join(row).rstrip() for row in self._rows]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def write(self, text: str) -> None:
        for piece in _PIECE.finditer(text):
            if piece["letter"] is not None:
                self._put(piece["letter"])
            else:
                self._obey(piece["codes"], piece["verb"])

    def _put(self, letter: str) -> None:
        if letter == "\r":
            self._column = 0
        elif letter == "\n":  # as a terminal has it, whose line discipline adds the return
            self._down()
            self._column = 0
        elif letter.isprintable():
            if self._column >= self.width:  # a full line wraps with the next letter, not before
                self._down()
                self._column = 0
            row = self._rows[self._row]
            row.extend(" " * (self._column + 1 - len(row)))
            row[self._column] = letter
            self._column += 1
        else:
            self.unknown.append(letter)

    def _down(self) -> None:
        self._row += 1
        if self._row == len(self._rows):
            self._rows.append([])

    def _obey(self, codes: str, verb: str) -> None:
        count = int(codes) if codes.isdigit() else 1
        top = max(len(self._rows) - self.height, 0)
        if verb == "A":
            self._row = max(self._row - count, top)
        elif verb == "B":
            self._row = min(self._row + count, len(self._rows) - 1)
        elif (codes, verb) == ("2", "K"):
            self._rows[self._row] = []
        elif verb in "lh" and codes == "?25":
            self.is_cursor_shown = verb == "h"
        elif verb != "m":
            self.unknown.append(f"{codes}{verb}")
