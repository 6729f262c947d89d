"""Looking at a game while it is played: what there is to see of it, without a hand in it."""

from __future__ import annotations

from hookloop.boards import Board, GameView, Move, marked, read_board, seat_names
from hookloop.rl.experience import Experience
from hookloop.selfplay.games import GameEnvs
from hookloop.selfplay.library import Game
from hookloop.selfplay.slots import GameSlotEnvs

MOST_MOVES = 24
"""The latest moves that a view has."""


class GameRecord:
    """A game as it is told: its position, and its moves in the game's own notation.

    It has a state of its own, and knows of another only the moves.

    Args:
        game: The game.
    """

    def __init__(self, game: Game) -> None:
        self.game = game
        self.name: str = game.get_type().short_name
        self.begin()

    def begin(self) -> None:
        """Go back to the first position."""
        self.state = self.game.new_initial_state()
        self.moves: list[Move] = []
        self.history: list[int] = []
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
        text = self.state.action_to_string(seat, action)
        # Of the position before only the last one is of use, and a jump over many moves reads none of them.
        self._before = str(self.state)
        self.state.apply_action(action)
        self.history.append(action)
        self.moves.append(Move(len(self.history), seat, text))
        self._board = None

    @property
    def text(self) -> str:
        """The position as the library writes it."""
        return str(self.state)

    @property
    def board(self) -> Board:
        """The position, with the last move marked."""
        if self._board is None:
            board = read_board(self.name, self.text)
            if self.moves:
                board = marked(board, self.name, self.moves[-1].text, read_board(self.name, self._before))
            self._board = board
        return self._board


class GameWatch:
    """Shows one of the games that are trained on, whenever somebody looks; may be asked from another thread.

    Training is not told: a look reads the moves of the game, which is one call of the library, and plays them again on
    its own.

    Args:
        games: The games.
        experience: What is learned from, for how full it is.
        row: Which game.
    """

    def __init__(self, games: GameEnvs | GameSlotEnvs, experience: Experience | None = None, *, row: int = 0) -> None:
        self._games, self._experience, self._row = games, experience, row
        self._record = GameRecord(games.game)

    def look(self) -> GameView:
        """Return the game as it is now."""
        record, history = self._record, self._games.history(self._row)
        if history is not None:
            record.follow(history)
        experience = self._experience
        return GameView(
            game=record.name,
            board=record.board,
            seats=seat_names(record.name),
            moves=tuple(record.moves[-MOST_MOVES:]),
            tally=self._games.tally.state_dict(),
            buffered=None if experience is None else (experience.steps, experience.horizon),
        )
