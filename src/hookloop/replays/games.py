"""Replays of games: a board after each move."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hookloop.boards import Board, Square, board_as_plain, marked, read_board
from hookloop.replays.files import Replay

KIND = "game"
_LASTING = ("files", "ranks", "is_slanted", "has_files_below")
"""What all boards of a game have in common."""
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
    drawn = [board_as_plain(board) for board in boards]
    return {
        "moves": moves,
        "game": {
            "width": len(boards[-1].rows[0]),
            "board": {name: drawn[-1][name] for name in _LASTING},
            "players": players(replay),
            "pieces": [asdict(square) for square in pieces],
            "squares": squares,
            "marks": [board["last"] for board in drawn],
            "hands": [board["hands"] for board in drawn] if boards[-1].hands else [],
        },
    }
