"""What the players of games are called."""

from __future__ import annotations

from collections.abc import Mapping

_SEATS: Mapping[str, tuple[str, str]] = {
    "tic_tac_toe": ("X", "O"),
    "connect_four": ("X", "O"),
    "hex": ("X", "O"),
    "othello": ("Black", "White"),
    "go": ("Black", "White"),
    "chess": ("Black", "White"),
    "shogi": ("Sente", "Gote"),
}
# In these games the second seat makes the first move.
_SECOND_BEGINS = ("chess",)


def seat_names(game: str) -> tuple[str, str]:
    """Return what the first and the second seat are called in a game."""
    return _SEATS.get(game, ("first", "second"))


def first_to_move(game: str) -> int:
    """Return the seat that makes the first move."""
    return 1 if game in _SECOND_BEGINS else 0
