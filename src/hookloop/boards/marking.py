"""Which squares the last move has touched."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from hookloop.boards.board import Board

# How moves name squares, for games in which a move changes more than the squares it is made on.
_NAMED: Mapping[str, re.Pattern[str]] = {
    "othello": re.compile(r"(?P<file>[a-h])(?P<rank>[1-8])"),
    "go": re.compile(r"[BW] (?P<file>[a-z])(?P<rank>\d+)"),
    "hex": re.compile(r"(?P<file>[a-z])(?P<rank>\d+)"),
    "shogi": re.compile(r"(?P<file>[1-9])(?P<rank>[a-i])"),
}


def marked(board: Board, game: str, move: str, before: Board | None = None) -> Board:
    """Return a board with the squares of the move that led to it, by its notation or by what it has changed.

    Args:
        board: The position after the move.
        game: The game's short name.
        move: The move in the game's notation.
        before: The position before it.
    """
    pattern = _NAMED.get(game)
    if pattern is not None:
        named = ((found["rank"], found["file"]) for found in pattern.finditer(move))
        last = {
            (board.ranks.index(rank), board.files.index(file))
            for rank, file in named
            if rank in board.ranks and file in board.files
        }
        return replace(board, last=frozenset(last))
    if before is None or len(before.rows) != len(board.rows):
        return board
    changed = {
        (row, column)
        for row, (new, old) in enumerate(zip(board.rows, before.rows, strict=True))
        for column, (one, other) in enumerate(zip(new, old, strict=False))
        if one != other
    }
    return replace(board, last=frozenset(changed))
