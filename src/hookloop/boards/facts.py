"""What a move has done and how a position stands, told from boards and notation: no rules of any game are in here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hookloop.boards.board import Board, Square
from hookloop.boards.kinds import Kind, kind_of

# Where a move leads, as its notation says it.
_ARRIVAL: Mapping[str, re.Pattern[str]] = {
    "tic_tac_toe": re.compile(r"[xo]\((\d+,\d+)\)"),
    "connect_four": re.compile(r"[xo](\d+)"),
    "hex": re.compile(r"([a-z]\d+)"),
    "othello": re.compile(r"([a-h][1-8])"),
    "go": re.compile(r"[BW] ([a-z]\d+)"),
    "chess": re.compile(r".*?([a-h][1-8])(?:=[QRBN])?[+#]?"),
    "shogi": re.compile(r".*?([1-9][a-i])\+?"),
}
_CASTLING = {"O-O": "g", "O-O-O": "c"}


@dataclass(frozen=True, slots=True)
class MoveFacts:
    """What a move has done. None is what cannot happen in the game, or cannot be told."""

    arrival: str | None = None
    """The square it leads to, as the game names it; in connect four the column."""
    captured: tuple[str, ...] | None = None
    """The letters of what was taken, in capitals; several stones in go."""
    turned: int | None = None
    """How many of the other's stones have become the mover's."""
    is_drop: bool | None = None
    is_promotion: bool | None = None
    is_check: bool | None = None


@dataclass(frozen=True, slots=True)
class Material:
    """What both have, as worth in pawns or as stones: the first seat, and the second."""

    on_board: tuple[float, float]
    in_hand: tuple[float, float] | None = None
    """None where nothing is held."""

    @property
    def total(self) -> tuple[float, float]:
        """Both together."""
        held = self.in_hand or (0.0, 0.0)
        return self.on_board[0] + held[0], self.on_board[1] + held[1]


def move_facts(
    game: str, move: str, seat: int, before: Board, after: Board, *, is_check: bool | None = None
) -> MoveFacts:
    """Return what a move has done.

    Args:
        game: The game's short name.
        move: The move in the game's notation.
        seat: Whose move it was.
        before: The position before it.
        after: The position after it.
        is_check: Whether it gives check, if somebody knows; in chess the notation says so.
    """
    kind = kind_of(game)
    if kind is None:
        return MoveFacts()
    lost = None
    if kind.has_captures or kind.turns_stones:
        lost = _lost(before, after, 1 - seat)
    return MoveFacts(
        arrival=_arrival(game, move, seat),
        captured=None if lost is None or not kind.has_captures else tuple(_letters(square) for square in lost),
        turned=None if lost is None or not kind.turns_stones else len(lost),
        is_drop="*" in move if kind.has_drops else None,
        is_promotion=_is_promotion(game, move) if kind.has_promotions else None,
        is_check=move.endswith(("+", "#")) if game == "chess" else is_check,
    )


def material(game: str, board: Board) -> Material | None:
    """Return what both have; None if it makes no sense for the game, or its board cannot be read."""
    kind = kind_of(game)
    if kind is None or not board.rows:
        return None
    on_board = [0.0, 0.0]
    for row in board.rows:
        for square in row:
            if square.seat is not None:
                on_board[square.seat] += _worth(kind, square)
    in_hand = [0.0, 0.0]
    for hand in board.hands:
        in_hand[hand.seat] = sum((count * _worth(kind, square) for square, count in hand.pieces), 0.0)
    return Material((on_board[0], on_board[1]), (in_hand[0], in_hand[1]) if kind.has_drops else None)


def king_moves(game: str, board: Board, seat: int, moves: Iterable[str]) -> int | None:
    """Return how many of the legal moves are made by the king; None in a game without one.

    Args:
        game: The game's short name.
        board: The position.
        seat: Who is to move.
        moves: The legal moves in the game's notation.
    """
    kind = kind_of(game)
    if kind is None or not kind.king or not board.rows:
        return None
    if game == "chess":  # whose notation begins with the piece
        return sum(move.startswith((kind.king, "O-O")) for move in moves)
    place = _place(board, kind.king, seat)
    return None if place is None else sum(move.startswith(place) for move in moves)


def worth(game: str, piece: str) -> float:
    """Return what a piece is worth, by its letters; a stone is worth 1."""
    kind = kind_of(game)
    return 1.0 if kind is None else float(kind.values.get(piece, 1))


def _arrival(game: str, move: str, seat: int) -> str | None:
    castled = _CASTLING.get(move.rstrip("+#")) if game == "chess" else None
    if castled is not None:
        return castled + ("8" if seat == 0 else "1")
    found = _ARRIVAL[game].fullmatch(move)
    return None if found is None else found[1]


def _is_promotion(game: str, move: str) -> bool:
    return "=" in move if game == "chess" else move.endswith("+")


def _lost(before: Board, after: Board, loser: int) -> list[Square] | None:
    """Return what stands no longer where it stood; None if one of the boards cannot be read."""
    if not before.rows or len(before.rows) != len(after.rows):
        return None
    return [
        old
        for old_row, new_row in zip(before.rows, after.rows, strict=True)
        if old_row is not new_row  # a row that is read twice is the same
        for old, new in zip(old_row, new_row, strict=True)
        if old.seat == loser != new.seat
    ]


def _place(board: Board, piece: str, seat: int) -> str | None:
    for rank, row in zip(board.ranks, board.rows, strict=True):
        for file, square in zip(board.files, row, strict=True):
            if square.seat == seat and _letters(square) == piece:
                return file + rank
    return None


def _worth(kind: Kind, square: Square) -> float:
    return float(kind.values.get(_letters(square), 1))


def _letters(square: Square) -> str:
    return square.letters.strip().upper()
