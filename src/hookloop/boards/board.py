"""What there is to see of a game: a board, hands, moves and a count of how games ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Square:
    """What stands on a square: in ASCII, as a symbol, and whose it is."""

    letters: str
    symbol: str
    seat: int | None = None
    """0 or 1; None for a square that is empty, or belongs to nobody."""


EMPTY = Square(".", "·")


@dataclass(frozen=True, slots=True)
class Hand:
    """What a player holds besides the board: pieces, and how many of each."""

    seat: int
    pieces: tuple[tuple[Square, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Board:
    """A position, row by row from the top; or the text of one whose form is not known.

    ``files`` name the columns and ``ranks`` the rows, as moves do. ``last`` are the squares of the last move, as
    row and column.
    """

    rows: tuple[tuple[Square, ...], ...] = ()
    files: tuple[str, ...] = ()
    ranks: tuple[str, ...] = ()
    last: frozenset[tuple[int, int]] = frozenset()
    hands: tuple[Hand, ...] = ()
    is_slanted: bool = False
    """Whether each row begins half a square further right than the one above."""
    has_files_below: bool = False
    """Whether the names of the columns stand below the board."""
    text: str = ""
    """The position as it was written, if it could not be read as rows."""


@dataclass(frozen=True, slots=True)
class Move:
    """One move of a game, in the game's own notation; the first has the number 1."""

    number: int
    seat: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GameView:
    """A game under way, and how the games before it ended."""

    game: str
    board: Board
    seats: tuple[str, str] = ("first", "second")
    """What the players are called."""
    moves: tuple[Move, ...] = ()
    """The latest ones."""
    tally: Mapping[str, int] = field(default_factory=dict[str, int])
    """Games by how they ended: ``first_wins``, ``second_wins``, ``draws``, ``cut_off``."""
    buffered: tuple[int, int] | None = None
    """How many steps of the next update are there, and how many it takes."""
    material: tuple[float, float] | None = None
    """What the players have, in hand included: worth in pawns, or stones; None where it means nothing."""
    is_check: bool | None = None
    """Whether who is to move is in check; None in games without it."""
    king_moves: int | None = None
    """How many of the legal moves are those of the king of who is to move."""
    quiet_moves: int | None = None
    """Moves since something was taken last; None in games in which nothing is."""
    recent: Mapping[str, int] = field(default_factory=dict[str, int])
    """The latest games by how they ended, as in ``tally``."""
    statistics: Mapping[str, float] = field(default_factory=dict[str, float])
    """Figures of games that were looked at, by name; only what the game has."""
    hot_squares: tuple[tuple[str, int], ...] = ()
    """Where moves led most often, and how often."""
    opening: tuple[str, ...] = ()
    """The moves that most games began with."""

    @property
    def games(self) -> int:
        """How many have ended."""
        return sum(self.tally.values())
