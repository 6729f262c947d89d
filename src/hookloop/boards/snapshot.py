"""A game under way as a file that others read: the training process writes it, whoever shows it checks it.

The form of every field stands in one table below. A field that is added with a default needs one line here and no new
version: readers leave out names they do not know, and take the default of what is missing. The version changes when
what is there changes its meaning.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hookloop.boards.board import Board, GameView, Hand, Move, Square
from hookloop.boards.forms import both, named, number, optional, record, several, text, truth, unordered, whole
from hookloop.errors import SnapshotError

Plain = Any

SNAPSHOT_VERSION = 1
SNAPSHOT_NAME = "game.json"
RUNNING = "running"
MOST_BYTES = 1 << 20
_MOST_SIDE = 64
_MOST = 2**53
"""What a number may be, so that JavaScript has it exactly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GameSnapshot:
    """A game as it was at one moment of a run."""

    view: GameView
    wall_time: float
    """When it was: seconds since 1970."""
    status: str = RUNNING
    """How the run stood: running, or how it has ended."""
    env_steps: int = 0
    """How many moves the run had made in all its games."""


def _fault(board: Board) -> str:
    """Return what makes a board impossible to draw."""
    widths = {len(row) for row in board.rows}
    columns = max(widths, default=0)
    if len(widths) > 1:
        return "its rows differ in length"
    if board.files and len(board.files) != columns:
        return f"it has {columns} columns, and names for {len(board.files)}"
    if board.ranks and len(board.ranks) != len(board.rows):
        return f"it has {len(board.rows)} rows, and names for {len(board.ranks)}"
    if [hand.seat for hand in board.hands] not in ([], [0, 1]):
        return "its hands are not those of the first and the second player"
    if any(row >= len(board.rows) or column >= columns for row, column in board.last):
        return "its last move lies outside"
    return ""


_VERSION = whole(1, 1_000_000)
_SEAT, _PLACE, _COUNT = whole(0, 1), whole(0, _MOST_SIDE - 1), whole(0, _MOST)
_FIGURE = number(-1e15, 1e15)
_SQUARE = record(Square, {"letters": text(8), "symbol": text(8), "seat": optional(_SEAT)})
_HAND = record(Hand, {"seat": _SEAT, "pieces": several(both(_SQUARE, _COUNT), 64)})
_MOVE = record(Move, {"number": whole(1, _MOST), "seat": _SEAT, "text": text(80)})
_BOARD = record(
    Board,
    {
        "rows": several(several(_SQUARE, _MOST_SIDE, least=1), _MOST_SIDE),
        "files": several(text(8), _MOST_SIDE),
        "ranks": several(text(8), _MOST_SIDE),
        "last": unordered(both(_PLACE, _PLACE), _MOST_SIDE**2),
        "hands": several(_HAND, 2),
        "is_slanted": truth(),
        "has_files_below": truth(),
        "text": text(20_000, has_lines=True),
    },
    _fault,
)
_VIEW = record(
    GameView,
    {
        "game": text(80),
        "board": _BOARD,
        "seats": both(text(40), text(40)),
        "moves": several(_MOVE, 1000),
        "tally": named(_COUNT, 32),
        "buffered": optional(both(_COUNT, _COUNT)),
        "material": optional(both(_FIGURE, _FIGURE)),
        "is_check": optional(truth()),
        "king_moves": optional(_COUNT),
        "quiet_moves": optional(_COUNT),
        "recent": named(_COUNT, 32),
        "statistics": named(_FIGURE, 200),
        "hot_squares": several(both(text(8), _COUNT), 64),
        "opening": several(text(80), 64),
    },
)
_SNAPSHOT = record(
    GameSnapshot,
    {"wall_time": number(0, 1e11), "status": text(40), "env_steps": _COUNT, "view": _VIEW},
)


def board_as_plain(board: Board) -> dict[str, Plain]:
    """Return a board as plain data."""
    return _BOARD.write(board)


def view_as_plain(view: GameView) -> dict[str, Plain]:
    """Return a game as plain data: mappings, lists, texts, numbers."""
    return _VIEW.write(view)


def snapshot_as_plain(snapshot: GameSnapshot) -> dict[str, Plain]:
    """Return a snapshot as plain data, with its version."""
    return {"version": SNAPSHOT_VERSION, **_SNAPSHOT.write(snapshot)}


def plain_as_snapshot(found: Plain) -> GameSnapshot:
    """Return the snapshot that plain data are; SnapshotError if they are none, or one of another version."""
    version = _VERSION.read(found.get("version") if isinstance(found, dict) else None, "its version")  # type: ignore[reportUnknownMemberType]
    if version > SNAPSHOT_VERSION:
        raise SnapshotError(f"it is from a newer hookloop (version {version}; this one reads {SNAPSHOT_VERSION}).")
    return _SNAPSHOT.read(found, "")


def snapshot_bytes(snapshot: GameSnapshot) -> bytes:
    """Return a snapshot as the content of a file: strict JSON in one line."""
    plain = snapshot_as_plain(snapshot)
    return (json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n").encode()


def snapshot_from_bytes(content: bytes) -> GameSnapshot:
    """Return the snapshot that the content of a file is; SnapshotError if it is none."""
    if len(content) > MOST_BYTES:
        raise SnapshotError(f"it is larger than {MOST_BYTES} bytes.")
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise SnapshotError("it is no JSON.") from error
    return plain_as_snapshot(found)


def read_snapshot(path: Path) -> GameSnapshot:
    """Read a snapshot; FileNotFoundError if there is no such file, SnapshotError if it is something else."""
    if not path.is_file():  # a pipe would never end, and a folder has no content
        raise FileNotFoundError(path)
    with path.open("rb") as file:
        return snapshot_from_bytes(file.read(MOST_BYTES + 1))
