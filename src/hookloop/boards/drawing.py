"""A board in letters: pieces of text, each with its role, so that whoever shows them chooses the colours."""

from __future__ import annotations

from typing import Literal, NamedTuple
from unicodedata import east_asian_width

from hookloop.boards.board import Board, Hand, Square

Role = Literal["first", "second", "empty", "mark", "label", "text"]
_PLAYERS: tuple[Role, Role] = ("first", "second")


class Ink(NamedTuple):
    """A piece of text, and what it is."""

    text: str
    role: Role


def draw_board(board: Board, *, is_ascii: bool = False, names: tuple[str, str] | None = None) -> list[list[Ink]]:
    """Return a board line by line, its hands with it; the squares of the last move stand in brackets.

    Args:
        board: The position.
        is_ascii: Use letters that every terminal has.
        names: The players, for the hands; without them no hands are drawn.
    """
    if not board.rows:
        return [[Ink(_printable(line), "text")] for line in board.text.rstrip().splitlines()]
    width = max(_cells(_shown(square, is_ascii)) for row in board.rows for square in row)
    label_width = max(map(len, board.ranks), default=0)
    files = _file_line(board, width, label_width)
    lines: list[list[Ink]] = [] if board.has_files_below or not board.files else [files]
    for number, row in enumerate(board.rows):
        lines.append(_row_line(board, number, row, width=width, label_width=label_width, is_ascii=is_ascii))
    if board.has_files_below and board.files:
        lines.append(files)
    if names is not None and board.hands:
        first, second = (_hand_line(hand, names, is_ascii=is_ascii) for hand in board.hands)
        lines = [second, *lines, first]  # each player's at their side of the board
    return lines


def board_text(board: Board, *, is_ascii: bool = False, names: tuple[str, str] | None = None) -> str:
    """Return a board as plain text."""
    drawn = draw_board(board, is_ascii=is_ascii, names=names)
    return "\n".join("".join(ink.text for ink in line).rstrip() for line in drawn)


def _row_line(
    board: Board, number: int, row: tuple[Square, ...], *, width: int, label_width: int, is_ascii: bool
) -> list[Ink]:
    indent = " " * (number * (width + 1) // 2) if board.is_slanted else ""
    label = board.ranks[number].rjust(label_width) if board.ranks else ""
    line = [Ink(indent + label, "label")]
    is_open = False
    for column, square in enumerate(row):
        is_last = (number, column) in board.last
        line.append(Ink(_fence(is_open, is_last), "mark"))
        is_open = is_last
        shown = _shown(square, is_ascii)
        role: Role = "empty" if square.seat is None else _PLAYERS[square.seat]
        line.append(Ink(" " * (width - _cells(shown)) + shown, role))
    line.append(Ink(_fence(is_open, False), "mark"))
    return line


def _fence(is_open: bool, opens: bool) -> str:
    """Return what stands between two squares."""
    return "|" if is_open and opens else "[" if opens else "]" if is_open else " "


def _file_line(board: Board, width: int, label_width: int) -> list[Ink]:
    # A symbol of two cells has its middle between them; its name stands below the right one.
    names = "".join(f" {name.rjust(width)}" for name in board.files)
    return [Ink(" " * label_width + names + " ", "label")]


def _hand_line(hand: Hand, names: tuple[str, str], *, is_ascii: bool) -> list[Ink]:
    held = " ".join(_shown(square, is_ascii) + (str(count) if count > 1 else "") for square, count in hand.pieces)
    return [
        Ink(f"{names[hand.seat]} holds ", "label"),
        Ink(held or "nothing", _PLAYERS[hand.seat] if held else "label"),
    ]


def _shown(square: Square, is_ascii: bool) -> str:
    return square.letters if is_ascii else square.symbol


def _cells(text: str) -> int:
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def _printable(line: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in line)
