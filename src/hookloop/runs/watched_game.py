"""The game of a run as it is seen from outside: from the file that the run writes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hookloop.boards import GameSnapshot, read_snapshot
from hookloop.boards.snapshot import RUNNING
from hookloop.errors import SnapshotError

Row = dict[str, Any]


class WatchedGame:
    """Reads the game of a run; a file that is missing, damaged or of a newer release is a fault in words, no error.

    Args:
        path: The file.
        wall: Seconds since 1970, as the file has them.
    """

    def __init__(self, path: Path, *, wall: Callable[[], float] = time.time) -> None:
        self._path = path
        self._wall = wall
        self._newest: GameSnapshot | None = None
        self._first_seen = 0.0

    def look(self, *, is_on: bool) -> Row:
        """Return what a view of the run has of its game.

        Args:
            is_on: Whether the run is on; of one that has ended, the last position is not old but final.
        """
        try:
            snapshot = read_snapshot(self._path)
        except FileNotFoundError:
            return {"game_fault": f"the run has written no {self._path.name}" + (" yet" if is_on else "")}
        except SnapshotError as error:
            return {"game_fault": f"{self._path.name} cannot be shown: {error}"}
        except OSError as error:
            return {"game_fault": f"{self._path.name} cannot be read: {error.strerror}"}
        is_final = snapshot.status != RUNNING and not is_on
        return {"game": snapshot.view, "game_age_seconds": None if is_final else self._age_of(snapshot)}

    def _age_of(self, snapshot: GameSnapshot) -> float:
        now = self._wall()
        if snapshot != self._newest:
            self._newest, self._first_seen = snapshot, now
        # By the clock of who wrote it; if that is ahead of ours, by how long it has been known here.
        return max(now - snapshot.wall_time, now - self._first_seen)
