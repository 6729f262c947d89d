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


def seat_names(game: str) -> tuple[str, str]:
    """Return what the first and the second seat are called in a game."""
    return _SEATS.get(game, ("first", "second"))
