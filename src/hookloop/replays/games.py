"""Replays of games: a board after each move."""

from __future__ import annotations

from typing import Any

from hookloop.boards import Board, Square, marked, read_board
from hookloop.replays.files import Replay

KIND = "game"
_RESULTS = {"draw": "a draw", "cut_off": "cut off without a winner"}


def is_game(replay: Replay) -> bool:
    """Tell whether a replay is one of a game, with all that belongs to it."""
    arrays = replay.arrays
    texts = all(name in arrays and arrays[name].ndim == 2 for name in ("boards", "moves"))
    return replay.about.get("kind") == KIND and texts and arrays["boards"].dtype == arrays["moves"].dtype == "uint8"


def players(replay: Replay) -> tuple[str, str]:
    """Return what the players are called."""
    about = replay.about
    return str(about.get("first", "first"))[:40], str(about.get("second", "second"))[:40]


def result(replay: Replay) -> str:
    """Return how the game ended, in words."""
    first, second = players(replay)
    end = str(replay.about.get("end", ""))
    return {"first_win": f"{first} won", "second_win": f"{second} won", **_RESULTS}.get(end, end)


def move_at(replay: Replay, step: int) -> str:
    """Return a move in the game's notation."""
    return bytes(replay.arrays["moves"][step]).rstrip(b"\0").decode(errors="replace")


def board_at(replay: Replay, step: int) -> Board:
    """Return the position after a move, with the move marked."""
    game = str(replay.about.get("game", ""))
    board = read_board(game, replay.board(step) or "")
    before = replay.board(step - 1) if step > 0 else str(replay.about.get("begins", ""))
    return marked(board, game, move_at(replay, step), read_board(game, before or ""))


def page_data(replay: Replay, steps: int) -> dict[str, Any]:
    """Return the boards of a game as a page draws them: pieces by number, square by square."""
    boards = [board_at(replay, step) for step in range(steps)]
    moves = [move_at(replay, step) for step in range(steps)]
    if not all(board.rows for board in boards):  # a form that is not known is shown as it was written
        return {"boards": [replay.board(step) or "" for step in range(steps)], "moves": moves}
    pieces: dict[Square, int] = {}
    squares = [[pieces.setdefault(square, len(pieces)) for row in board.rows for square in row] for board in boards]
    last, width = boards[-1], len(boards[-1].rows[0])
    return {
        "moves": moves,
        "game": {
            "width": width,
            "files": last.files,
            "ranks": last.ranks,
            "isSlanted": last.is_slanted,
            "hasFilesBelow": last.has_files_below,
            "players": players(replay),
            "pieces": [[square.symbol.strip(), square.seat, square.letters.strip()] for square in pieces],
            "squares": squares,
            "marks": [[row * width + column for row, column in sorted(board.last)] for board in boards],
            "hands": [[_held(board, seat) for seat in (0, 1)] for board in boards] if last.hands else [],
        },
    }


def _held(board: Board, seat: int) -> list[list[Any]]:
    pieces = next((hand.pieces for hand in board.hands if hand.seat == seat), ())
    return [[square.symbol, square.letters, count] for square, count in pieces]
