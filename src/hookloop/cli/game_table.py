"""A game between a person and a model, move by move: what is asked, shown and said."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from hookloop.boards import Board, seat_names
from hookloop.cli.move_words import MoveBook

if TYPE_CHECKING:
    from hookloop.selfplay.thinking import Thinker
    from hookloop.selfplay.watching import GameRecord

Ending = Literal["over", "resigned", "left"]

HELP = """\
A move      in the game's notation, such as {example}, or by its number in 'moves'
moves [X]   list the legal moves and their numbers; with X those that begin with it
hint        what the model would play for you
board       show the board again
undo        take back your last move and the answer to it
resign      give the game up
quit        leave"""
MOST_HINTS = 3
_LINE = 76


class GameTable:
    """Lets a person play against a model.

    Args:
        record: The game, at its beginning.
        thinker: What the model thinks with, for hints.
        answer: Chooses the model's moves.
        person: The person's seat.
        ask: Asks for a line; raises EOFError when there are no more.
        say: Writes a line.
        paint: Draws a board, given what the players are called.
    """

    def __init__(
        self,
        record: GameRecord,
        thinker: Thinker,
        *,
        answer: Callable[[], int],
        person: int,
        ask: Callable[[str], str],
        say: Callable[[str], None],
        paint: Callable[[Board, tuple[str, str]], str],
    ) -> None:
        self._record, self._thinker, self._answer = record, thinker, answer
        self._person = person
        self._ask, self._say, self._paint = ask, say, paint
        self.names = seat_names(record.name)

    def play(self) -> Ending:
        """Play to the end, or until the person has had enough."""
        record = self._record
        self._show()
        while not record.state.is_terminal():
            if record.state.current_player() != self._person:
                record.play(self._answer())
                self._show()
                continue
            try:
                words = self._ask(f"move {len(record.moves) + 1}, {self.names[self._person]}> ").strip()
            except EOFError:
                return "left"
            ending = self._take(words)
            if ending is not None:
                return ending
        self._say(self._result())
        return "over"

    def _take(self, words: str) -> Ending | None:
        """Act on what the person has written; return how the game ended, if it did by that."""
        verb, _, rest = words.partition(" ")
        book = MoveBook(self._legal())
        move = book.find(words) if words else None
        if move is not None:
            self._record.play(move)
            self._show()
        elif verb.lower() in ("quit", "exit", "q"):
            return "left"
        elif verb.lower() == "resign":
            self._say(f"You gave up after {self._length()}: {self.names[1 - self._person]}, the model, has won.")
            return "resigned"
        elif verb.lower() == "moves":
            self._list(book, rest.strip())
        elif verb.lower() in _COMMANDS:
            _COMMANDS[verb.lower()](self)
        elif words:
            self._say(book.explain(words))
        return None

    def _legal(self) -> dict[int, str]:
        state = self._record.state
        return {move: state.action_to_string(self._person, move) for move in state.legal_actions()}

    def _show(self) -> None:
        record = self._record
        if record.moves:
            last = record.moves[-1]
            who = "You" if last.seat == self._person else "The model"
            self._say(f"{last.number}. {who} ({self.names[last.seat]}): {last.text}")
        self._show_board()

    def _show_board(self) -> None:
        self._say(self._paint(self._record.board, self.names))

    def _help(self) -> None:
        self._say(HELP.format(example=next(iter(self._legal().values()))))

    def _hint(self) -> None:
        thoughts = self._thinker.think([self._record.state])[0]
        ranked = sorted(zip(thoughts.probabilities(), thoughts.moves, strict=True), reverse=True)[:MOST_HINTS]
        legal = self._legal()
        likely = ", ".join(f"{legal[move]} ({share:.0%})" for share, move in ranked)
        self._say(f"The model would play {likely}; it expects {thoughts.value:+.2f} for you.")

    def _undo(self) -> None:
        moves = self._record.moves
        own = max((place for place, move in enumerate(moves) if move.seat == self._person), default=None)
        if own is None:
            self._say("You have not moved yet; there is nothing to take back.")
            return
        kept, taken = self._record.history[:own], ", ".join(move.text for move in moves[own:])
        self._record.begin()
        self._record.follow(kept)
        self._say(f"Taken back: {taken}.")
        self._show_board()

    def _list(self, book: MoveBook, beginning: str) -> None:
        found = [f"{number}: {text}" for number, text in book.legal.items() if text.startswith(beginning)]
        if not found:
            self._say(f"No legal move begins with {beginning!r}; 'moves' lists all {len(book.legal)}.")
            return
        width = max(map(len, found)) + 2
        columns = max(_LINE // width, 1)
        for begin in range(0, len(found), columns):
            self._say("".join(each.ljust(width) for each in found[begin : begin + columns]).rstrip())

    def _result(self) -> str:
        won = self._record.state.returns()[self._person]
        if won == 0:
            return f"A draw after {self._length()}."
        who = "You" if won > 0 else "The model"
        name = self.names[self._person if won > 0 else 1 - self._person]
        return f"{who} ({name}) won after {self._length()}."

    def _length(self) -> str:
        count = len(self._record.moves)
        return f"{count} move" if count == 1 else f"{count} moves"


_COMMANDS: dict[str, Callable[[GameTable], None]] = {
    "help": GameTable._help,
    "?": GameTable._help,
    "hint": GameTable._hint,
    "board": GameTable._show_board,
    "undo": GameTable._undo,
}
