"""Boards on the standard output: in colours where there are some, in ASCII where nothing else can be written."""

from __future__ import annotations

import os
import sys

from hookloop.boards import Board, draw_board

_COLOURS = {"first": "1;93", "second": "1;96", "empty": "90", "mark": "33", "label": "2", "text": ""}


def painted(board: Board, names: tuple[str, str], *, in_letters: bool = False) -> str:
    """Return a board as the standard output can show it; in letters on wish, also where there are symbols."""
    has_colours = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    lines = draw_board(board, is_ascii=in_letters or not can_write("●龍"), names=names)
    if not has_colours:
        return "\n".join("".join(ink.text for ink in line).rstrip() for line in lines)
    return "\n".join("".join(_coloured(ink.text, _COLOURS[ink.role]) for ink in line) for line in lines)


def can_write(letters: str) -> bool:
    """Tell whether the standard output has these letters."""
    try:
        letters.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _coloured(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if code and text.strip() else text
