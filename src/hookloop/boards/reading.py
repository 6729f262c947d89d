"""From the text that OpenSpiel writes of a position to a board; what is not understood stays a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from hookloop.boards.board import EMPTY, Board, Hand, Square

MOST_LETTERS = 1000
"""Of a row, or of a text in Forsyth's notation; no board has more."""

_CROSSES = {"x": Square("X", "X", 0), "o": Square("O", "O", 1), ".": EMPTY}
_DISCS = {"x": Square("X", "●", 0), "o": Square("O", "○", 1), ".": EMPTY, "-": EMPTY}
_STONES = {"X": Square("X", "●", 0), "O": Square("O", "○", 1), "+": EMPTY}
_CHESS = {
    letter: Square(letter, symbol, int(letter.isupper()))
    for letter, symbol in zip("KQRBNPkqrbnp", "♔♕♖♗♘♙♚♛♜♝♞♟", strict=True)
}
_SHOGI_SYMBOLS = {
    "K": "玉", "R": "飛", "B": "角", "G": "金", "S": "銀", "N": "桂", "L": "香", "P": "歩",
    "+R": "龍", "+B": "馬", "+S": "全", "+N": "圭", "+L": "杏", "+P": "と",
}  # fmt: skip
# Of two letters, since promoted pieces are: a board keeps its width.
_SHOGI_EMPTY = Square(" .", "・")
# On paper the pieces of the player at the top stand upside down; in a line of letters a "v" says so.
_SHOGI = {letters: Square(letters.rjust(2), f" {symbol}", 0) for letters, symbol in _SHOGI_SYMBOLS.items()} | {
    letters.lower(): Square(letters.lower().rjust(2), f"v{symbol}", 1) for letters, symbol in _SHOGI_SYMBOLS.items()
}
_PIECES = {"crosses": _CROSSES, "discs": _DISCS, "stones": _STONES, "chess": _CHESS, "shogi": _SHOGI}
_IN_HAND = re.compile(r"(\d*)([RBGSNLPrbgsnlp])")
_OTHELLO_ROW = re.compile(r"(\d) ((?:[xo-] ){8})\d")
_GO_ROW = re.compile(r" ?(\d+) ([XO+]+)")


class _UnreadableError(Exception):
    """A text does not have the form that its game should have."""


def read_board(game: str, text: str) -> Board:
    """Return a position as a board, by the short name of its game; one of an unknown game or form stays a text."""
    read = _READERS.get(game)
    if read is None:
        return Board(text=text)
    try:
        board = read(text)
    except _UnreadableError:
        return Board(text=text)
    # A board whose rows differ, or that has more squares than names for them, is none.
    is_whole = all(len(row) == len(board.files) > 0 for row in board.rows)
    is_named = not board.ranks or len(board.ranks) == len(board.rows)
    return board if board.rows and is_whole and is_named else Board(text=text)


def _tic_tac_toe(text: str) -> Board:
    rows = _rows(text.split(), "crosses")
    return Board(rows, files=_numbers(len(rows[0])), ranks=_numbers(len(rows)))


def _connect_four(text: str) -> Board:
    rows = _rows(text.split(), "discs")
    return Board(rows, files=_numbers(len(rows[0])), has_files_below=True)


def _hex(text: str) -> Board:
    rows = _rows((line.replace(" ", "") for line in text.splitlines()), "discs")
    return Board(rows, _letters(len(rows[0])), _numbers(len(rows), 1), is_slanted=True)


def _othello(text: str) -> Board:
    found = [match for line in text.splitlines() if (match := _OTHELLO_ROW.fullmatch(line))]
    rows = _rows((match[2].replace(" ", "") for match in found), "discs")
    return Board(rows, _letters(len(rows[0])), tuple(match[1] for match in found))


def _go(text: str) -> Board:
    found = [match for line in text.splitlines() if (match := _GO_ROW.fullmatch(line))]
    rows = _rows((match[2] for match in found), "stones")
    # Go leaves the letter i out.
    files = tuple("abcdefghjklmnopqrstuvwxyz"[: len(rows[0])])
    return Board(rows, files, tuple(match[1] for match in found), has_files_below=True)


def _chess(text: str) -> Board:
    rows = _forsyth(text.partition(" ")[0], "chess")
    return Board(rows, _letters(len(rows[0])), tuple(reversed(_numbers(len(rows), 1))), has_files_below=True)


def _shogi(text: str) -> Board:
    parts = text.split(" ")
    if len(parts) < 3:
        raise _UnreadableError
    rows = _forsyth(parts[0], "shogi")
    files = tuple(reversed(_numbers(len(rows[0]), 1)))
    return Board(rows, files, _letters(len(rows)), hands=_hands(parts[2][:200]))


@lru_cache(maxsize=256)
def _hands(text: str) -> tuple[Hand, ...]:
    return tuple(Hand(seat, _in_hand(text, seat)) for seat in (0, 1))


def _in_hand(text: str, seat: int) -> tuple[tuple[Square, int], ...]:
    pieces = ((_SHOGI[letter], int(count or 1)) for count, letter in _IN_HAND.findall(text))
    return tuple(
        (Square(piece.letters.strip(), piece.symbol[1:], seat), count) for piece, count in pieces if piece.seat == seat
    )


def _forsyth(text: str, pieces: str) -> tuple[tuple[Square, ...], ...]:
    """Return the rows of a position in the notation of Forsyth: digits are empty squares, a plus belongs to a piece."""
    return tuple(_forsyth_row(line, pieces) for line in text[:MOST_LETTERS].split("/"))


def _rows(lines: Iterable[str], pieces: str) -> tuple[tuple[Square, ...], ...]:
    rows = tuple(_row(line, pieces) for line in lines if line)
    if not rows:
        raise _UnreadableError
    return rows


# A move changes a row or two: the others are read once, and are the same objects from then on.
@lru_cache(maxsize=4096)
def _forsyth_row(line: str, pieces: str) -> tuple[Square, ...]:
    row: list[Square] = []
    empty = _SHOGI_EMPTY if pieces == "shogi" else EMPTY
    for word in re.findall(r"\d|\+?[A-Za-z]|.", line):
        if word.isdecimal():
            row += [empty] * int(word)
        else:
            row.append(_piece(word, _PIECES[pieces]))
    return tuple(row)


@lru_cache(maxsize=4096)
def _row(line: str, pieces: str) -> tuple[Square, ...]:
    if len(line) > MOST_LETTERS:
        raise _UnreadableError
    return tuple(_piece(letter, _PIECES[pieces]) for letter in line)


def _piece(letters: str, pieces: Mapping[str, Square]) -> Square:
    if letters not in pieces:
        raise _UnreadableError
    return pieces[letters]


@lru_cache(maxsize=64)
def _numbers(count: int, first: int = 0) -> tuple[str, ...]:
    return tuple(map(str, range(first, first + count)))


def _letters(count: int) -> tuple[str, ...]:
    return tuple("abcdefghijklmnopqrstuvwxyz"[:count])


_READERS: Mapping[str, Callable[[str], Board]] = {
    "tic_tac_toe": _tic_tac_toe,
    "connect_four": _connect_four,
    "othello": _othello,
    "hex": _hex,
    "go": _go,
    "chess": _chess,
    "shogi": _shogi,
}
