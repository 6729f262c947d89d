"""What there is in the games that are known: pieces and their worth, captures, drops, promotions, a king."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Kind:
    """What can happen in a game; what cannot is not counted, which is something else than none."""

    values: Mapping[str, float] = field(default_factory=dict[str, float])
    """What a piece is worth, by its letters in capitals; empty where all are alike, and counted."""
    has_captures: bool = False
    has_drops: bool = False
    has_promotions: bool = False
    turns_stones: bool = False
    """Whether stones change their owner where they stand."""
    king: str = ""
    """The letter of the piece that must not be lost."""

    @property
    def has_material(self) -> bool:
        """Whether it means something to have more on the board than the other."""
        return bool(self.values) or self.has_captures or self.turns_stones


_CHESS = Kind(
    {"P": 1, "N": 3, "B": 3, "R": 5, "Q": 9, "K": 0}, has_captures=True, has_promotions=True, king="K"
)  # fmt: skip
# Shogi has no agreed values; these are widespread ones, in pawns.
_SHOGI = Kind(
    {
        "P": 1, "L": 3, "N": 4, "S": 5, "G": 6, "B": 8, "R": 10, "K": 0,
        "+P": 7, "+L": 6, "+N": 6, "+S": 6, "+B": 10, "+R": 12,
    },
    has_captures=True, has_drops=True, has_promotions=True, king="K",
)  # fmt: skip
_KINDS: Mapping[str, Kind] = {
    "tic_tac_toe": Kind(),
    "connect_four": Kind(),
    "hex": Kind(),
    "othello": Kind(turns_stones=True),
    "go": Kind(has_captures=True),
    "chess": _CHESS,
    "shogi": _SHOGI,
}


def kind_of(game: str) -> Kind | None:
    """Return what there is in a game, by its short name; None for one that is not known."""
    return _KINDS.get(game)
