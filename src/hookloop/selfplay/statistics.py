"""How games are played: figures of single games that have ended, and what the latest of them have in common."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

Plain = Any

WINDOW = 100
"""The latest games that figures are of."""
MOST_SHARE = 0.05
"""Of the moves that are played, the part that is looked at; the rest of the games is left out."""
OPENING_MOVES = 3
"""Moves of a game that are its opening."""
MOST_SQUARES = 5
"""Hot squares that are named."""
SEATS = ("first", "second")


@dataclass(frozen=True, slots=True, kw_only=True)
class GameFigures:
    """What happened in one game; what cannot happen in it is None, or not in ``counts``."""

    moves: int
    counts: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """By what is counted, such as ``captures``: the first seat's, and the second's."""
    arrivals: dict[str, int] = field(default_factory=dict[str, int])
    """How often a move led to a square, by its name."""
    opening: list[str] | None = None
    """The first moves; None if they were drawn, or the game was shorter."""
    best_capture: float | None = None
    """The worth of the best that was taken; None if nothing was."""
    longest_quiet: int | None = None
    """The most moves in a row without a capture."""
    lead: float | None = None
    """The first seat's material at the end, less the second's."""
    king_moves: list[list[int]] | None = None
    """For each seat: the legal moves of its king in the positions that were looked at, and how many those were."""


@dataclass(frozen=True, slots=True)
class GameSummary:
    """What is known of the latest games, as plain values."""

    figures: Mapping[str, float] = field(default_factory=dict[str, float])
    hot_squares: tuple[tuple[str, int], ...] = ()
    opening: tuple[str, ...] = ()
    recent: Mapping[str, int] = field(default_factory=dict[str, int])


class GameStatistics:
    """Keeps the figures of the latest games that were looked at, and sums them up.

    Args:
        window: How many games.
        most_share: The most moves to look at, as a part of those that are played. It bounds what looking costs, and
            goes by moves and not by time, so that the same games are looked at after a resume.
    """

    def __init__(self, window: int = WINDOW, most_share: float = MOST_SHARE) -> None:
        self._most_share = most_share
        self._window = window
        self._latest: deque[GameFigures] = deque()
        self._arrivals: Counter[str] = Counter()
        self._summary: GameSummary | None = None
        self.games = 0
        """How many games were looked at."""
        self.moves = 0
        """How many moves those had."""

    def has_room(self, played_moves: int) -> bool:
        """Tell whether another game may be looked at after so many moves."""
        return self.moves <= self._most_share * played_moves

    def add(self, game: GameFigures) -> None:
        """Take in a game that was looked at."""
        self.games += 1
        self.moves += game.moves
        self._keep(game)

    def summary(self) -> GameSummary:
        """Return means over the latest games, their hot squares, and the opening that most of them have."""
        if self._summary is None:
            self._summary = self._summed_up()
        return self._summary

    def state_dict(self) -> dict[str, Plain]:
        """Return the figures of the latest games, and how many there were in all."""
        return {"games": self.games, "moves": self.moves, "latest": [asdict(game) for game in self._latest]}

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on from a saved state."""
        self.games, self.moves = int(saved["games"]), int(saved["moves"])
        self._latest.clear()
        self._arrivals.clear()
        for game in saved["latest"]:
            self._keep(GameFigures(**game))

    def _keep(self, game: GameFigures) -> None:
        self._summary = None
        self._latest.append(game)
        self._arrivals.update(game.arrivals)
        if len(self._latest) > self._window:
            self._arrivals.subtract(self._latest.popleft().arrivals)

    def _summed_up(self) -> GameSummary:
        games = self._latest
        if not games:
            return GameSummary()
        figures = {"looked_at": float(self.games)}
        for name in dict.fromkeys(name for game in games for name in game.counts):
            for seat, who in enumerate(SEATS):
                counts = (game.counts[name][seat] for game in games if name in game.counts)
                figures |= _mean(f"{who}_{name}", counts)
        for name in ("best_capture", "longest_quiet", "lead"):
            figures |= _mean(name, (getattr(game, name) for game in games))
        figures |= _king_figures(games)
        openings = Counter(tuple(game.opening) for game in games if game.opening is not None)
        opening: tuple[str, ...] = ()
        if openings:
            opening, often = openings.most_common(1)[0]
            figures["opening_share"] = often / openings.total()
        # By name where they are equal, and not by who came first, which a resume does not know.
        hot = sorted((+self._arrivals).items(), key=lambda each: (-each[1], each[0]))[:MOST_SQUARES]
        return GameSummary(figures, tuple(hot), opening)


def _mean(name: str, values: Iterable[float | None]) -> dict[str, float]:
    """Return the mean of what is there; nothing if nothing is."""
    known = [value for value in values if value is not None]
    return {name: sum(known) / len(known)} if known else {}


def _king_figures(games: Iterable[GameFigures]) -> dict[str, float]:
    found: dict[str, float] = {}
    known = [game.king_moves for game in games if game.king_moves is not None]
    for seat, who in enumerate(SEATS):
        positions = sum(each[seat][1] for each in known)
        if positions:
            found[f"{who}_king_moves"] = sum(each[seat][0] for each in known) / positions
    return found
