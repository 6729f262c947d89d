"""Looking at a game while it is played: what there is to see of it, without a hand in it."""

from __future__ import annotations

from collections.abc import Callable

from hookloop.boards import (
    Board,
    GameView,
    Move,
    MoveFacts,
    kind_of,
    king_moves,
    marked,
    material,
    move_facts,
    read_board,
    seat_names,
)
from hookloop.rl.experience import Experience
from hookloop.selfplay.games import GameEnvs
from hookloop.selfplay.library import Game
from hookloop.selfplay.slots import GameSlotEnvs
from hookloop.selfplay.statistics import GameSummary

MOST_MOVES = 24
"""The latest moves that a view has."""


class GameRecord:
    """A game as it is told: its position, its moves in the game's own notation, and what the last one has done.

    It has a state of its own, and knows of another only the moves.

    Args:
        game: The game.
    """

    def __init__(self, game: Game) -> None:
        self.game = game
        self.name: str = game.get_type().short_name
        kind = kind_of(self.name)
        self._has_captures = kind is not None and kind.has_captures
        self._has_losses = self._has_captures or (kind is not None and kind.turns_stones)
        self.begin()

    def begin(self) -> None:
        """Go back to the first position."""
        self.state = self.game.new_initial_state()
        self.moves: list[Move] = []
        self.history: list[int] = []
        self.facts: MoveFacts | None = None
        """What the last move has done; None before the first."""
        self.quiet_moves: int | None = 0 if self._has_captures else None
        """Moves since something was taken last; None in games in which nothing is."""
        self._text: str | None = None
        self._position: Board | None = None
        self._board: Board | None = None
        self._before = ""

    def follow(self, history: list[int]) -> None:
        """Go to where these moves lead; those that are made already are not made again."""
        if history[: len(self.history)] != self.history:
            self.begin()
        for action in history[len(self.history) :]:
            self.play(action)

    def play(self, action: int) -> None:
        """Make one move."""
        seat = self.state.current_player()
        move = self.state.action_to_string(seat, action)
        # A position is read only where a move may have changed what somebody else has.
        before = self.position if self._has_losses else Board()
        self._before = self.text
        self.state.apply_action(action)
        self.history.append(action)
        self.moves.append(Move(len(self.history), seat, move))
        self._text = self._position = self._board = None
        after = self.position if self._has_losses else Board()
        self.facts = move_facts(self.name, move, seat, before, after, is_check=self._is_check())
        if self.quiet_moves is not None:
            self.quiet_moves = 0 if self.facts.captured else self.quiet_moves + 1

    @property
    def text(self) -> str:
        """The position as the library writes it."""
        if self._text is None:
            self._text = str(self.state)
        return self._text

    @property
    def position(self) -> Board:
        """The position, without a mark."""
        if self._position is None:
            self._position = read_board(self.name, self.text)
        return self._position

    @property
    def board(self) -> Board:
        """The position, with the last move marked."""
        if self._board is None:
            self._board = self.position
            if self.moves:
                before = read_board(self.name, self._before)
                self._board = marked(self.position, self.name, self.moves[-1].text, before)
        return self._board

    def king_moves(self) -> int | None:
        """Return how many of the legal moves are the king's; None without a king, or when the game is over."""
        state = self.state
        kind = kind_of(self.name)
        if kind is None or not kind.king or state.is_terminal():
            return None
        seat = state.current_player()
        legal = (state.action_to_string(seat, action) for action in state.legal_actions())
        return king_moves(self.name, self.position, seat, legal)

    def _is_check(self) -> bool | None:
        """Return whether who is to move is in check, if the library says so."""
        ask = getattr(self.state, "in_check", None)
        return None if ask is None else bool(ask())


class GameWatch:
    """Shows one of the games that are trained on, whenever somebody looks; may be asked from another thread.

    Training is not told: a look reads the moves of the game, which is one call of the library, and plays them again on
    its own.

    Args:
        games: The games.
        experience: What is learned from, for how full it is.
        row: Which game.
        summary: Returns what is known of games that have ended, if anybody knows.
    """

    def __init__(
        self,
        games: GameEnvs | GameSlotEnvs,
        experience: Experience | None = None,
        *,
        row: int = 0,
        summary: Callable[[], GameSummary | None] = lambda: None,
    ) -> None:
        self._games, self._experience, self._row, self._summary = games, experience, row, summary
        self._record = GameRecord(games.game)

    def look(self) -> GameView:
        """Return the game as it is now."""
        record, history = self._record, self._games.history(self._row)
        if history is not None:
            record.follow(history)
        experience, summary = self._experience, self._summary() or GameSummary()
        kind, facts = kind_of(record.name), record.facts
        counted = material(record.name, record.position) if kind is not None and kind.has_material else None
        return GameView(
            game=record.name,
            board=record.board,
            seats=seat_names(record.name),
            moves=tuple(record.moves[-MOST_MOVES:]),
            tally=self._games.tally.state_dict(),
            buffered=None if experience is None else (experience.steps, experience.horizon),
            material=None if counted is None else counted.total,
            is_check=None if facts is None else facts.is_check,
            king_moves=record.king_moves(),
            quiet_moves=record.quiet_moves,
            recent=summary.recent,
            statistics=summary.figures,
            hot_squares=summary.hot_squares,
            opening=summary.opening,
        )
