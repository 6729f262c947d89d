"""Moves as people write them: by the game's notation or by number, with what was meant where it is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

MOST_NEAR = 5


class MoveBook:
    """The legal moves of one position, by everything they may be called.

    Args:
        legal: The moves in the game's notation, by number.
    """

    def __init__(self, legal: Mapping[int, str]) -> None:
        self.legal = dict(legal)
        self._exact = {text: number for number, text in legal.items()}
        self._loose: dict[str, set[int]] = {}
        for number, text in legal.items():
            for name in _names(text):
                self._loose.setdefault(name, set()).add(number)

    def find(self, words: str) -> int | None:
        """Return the move that is meant; None if there is none, or more than one.

        What is written exactly as the game writes it counts first, since case may matter: in chess a bishop is a
        ``B`` and a pawn of the second file a ``b``.
        """
        if words in self._exact:
            return self._exact[words]
        found = self._loose.get(_squeezed(words), set())
        if len(found) == 1:
            return next(iter(found))
        if words.isdecimal() and len(words) < 10 and int(words) in self.legal:
            return int(words)
        return None

    def explain(self, words: str) -> str:
        """Say why words are no move, and which moves are near."""
        meant = sorted(self._loose.get(_squeezed(words), set()))
        if len(meant) > 1:
            return f"{words!r} could be {_listed([self.legal[each] for each in meant])}: write it as one of them."
        near = get_close_matches(_squeezed(words), self._loose, n=MOST_NEAR, cutoff=0.4)
        numbers = dict.fromkeys(number for name in near for number in sorted(self._loose[name]))
        moves = [self.legal[number] for number in numbers][:MOST_NEAR]
        hint = f" Near it: {_listed(moves)}." if moves else ""
        return f"{words!r} is no legal move here.{hint} 'moves' lists all {len(self.legal)}."


def _names(text: str) -> set[str]:
    """Return what a move may be called besides: without blanks, its last word, without the player's letter."""
    squeezed = _squeezed(text)
    names = {squeezed, _squeezed(text.rpartition(" ")[2])}
    if squeezed[:1] in ("x", "o") and len(squeezed) > 1 and not squeezed[1].isalpha():
        names.add(squeezed[1:].strip("()"))
    return names


def _squeezed(text: str) -> str:
    return "".join(text.split()).lower()


def _listed(moves: list[str]) -> str:
    return ", ".join(moves)
