"""A game that has ended, looked at move by move."""

from __future__ import annotations

from hookloop.boards import MoveFacts, kind_of, material, worth
from hookloop.selfplay.games import EndedGame
from hookloop.selfplay.library import Game
from hookloop.selfplay.statistics import OPENING_MOVES, GameFigures
from hookloop.selfplay.watching import GameRecord

KING_EVERY = 15
"""The king's moves are counted in one position out of so many, since all legal moves are written out for it. An odd
number: both seats have their turn."""


def figures_of(game: Game, ended: EndedGame) -> GameFigures:
    """Return the figures of a game; moves that were drawn to open it are in none of them."""
    history = ended.state.history()
    record, drawn = GameRecord(game), len(history) - ended.played
    for action in history[:drawn]:
        record.play(action)
    counting = _Counting(record.name)
    for number, action in enumerate(history[drawn:]):
        record.play(action)
        assert record.facts is not None
        counting.note(record.moves[-1].seat, record.facts)
        if number % KING_EVERY == 0:
            counting.note_king(1 - record.moves[-1].seat, record.king_moves())
    kind = kind_of(record.name)
    counted = material(record.name, record.position) if kind is not None and kind.has_material else None
    is_whole = drawn == 0 and len(history) >= OPENING_MOVES
    return GameFigures(
        moves=len(history),
        counts=counting.counts,
        arrivals=counting.arrivals,
        opening=[move.text for move in record.moves[:OPENING_MOVES]] if is_whole else None,
        best_capture=counting.best_capture,
        longest_quiet=counting.longest_quiet,
        lead=None if counted is None else counted.total[0] - counted.total[1],
        king_moves=counting.king_moves,
    )


class _Counting:
    """Counts what the moves of one game do."""

    def __init__(self, game: str) -> None:
        self._game = game
        self.counts: dict[str, list[int]] = {}
        self.arrivals: dict[str, int] = {}
        self.best_capture: float | None = None
        self.longest_quiet: int | None = None
        self.king_moves: list[list[int]] | None = None
        self._quiet = 0

    def note(self, seat: int, facts: MoveFacts) -> None:
        """Count one move."""
        if facts.arrival is not None:
            self.arrivals[facts.arrival] = self.arrivals.get(facts.arrival, 0) + 1
        self._count("captures", seat, None if facts.captured is None else len(facts.captured))
        self._count("turned", seat, facts.turned)
        self._count("drops", seat, facts.is_drop)
        self._count("promotions", seat, facts.is_promotion)
        self._count("checks", seat, facts.is_check)
        if facts.captured is None:
            return
        self._quiet = 0 if facts.captured else self._quiet + 1
        self.longest_quiet = max(self.longest_quiet or 0, self._quiet)
        if facts.captured:
            taken = sum(worth(self._game, piece) for piece in facts.captured)
            self.best_capture = max(self.best_capture or 0.0, taken)

    def note_king(self, seat: int, moves: int | None) -> None:
        """Count the legal moves of a king in one position."""
        if moves is not None:
            if self.king_moves is None:
                self.king_moves = [[0, 0], [0, 0]]
            self.king_moves[seat][0] += moves
            self.king_moves[seat][1] += 1

    def _count(self, name: str, seat: int, often: int | None) -> None:
        if often is not None:
            self.counts.setdefault(name, [0, 0])[seat] += often
