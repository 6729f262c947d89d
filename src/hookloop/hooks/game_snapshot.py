"""The game that a run plays, in a file for whoever looks on from outside."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hookloop.boards import GameSnapshot, GameView, snapshot_bytes
from hookloop.boards.snapshot import RUNNING, SNAPSHOT_NAME
from hookloop.core import HookContext
from hookloop.core.clocks import ENV_STEPS
from hookloop.monitoring.ticker import Ticker, require_seconds
from hookloop.storage.atomic import write_bytes

log = logging.getLogger("hookloop.hooks")

Live = Any


class GameSnapshotHook:
    """Write the game that is played into a file, every ``interval_seconds``; training notices nothing.

    A thread of its own looks and writes, whatever the training thread does. The last position stays in the file, with
    how the run ended. A trainer that plays no games gets no file. A disk that refuses is tried again next time.

    Args:
        path: The file.
        interval_seconds: Seconds between two looks.
        wall: Seconds since 1970: when a look was, as the file says it.
    """

    name = "game_snapshot"
    stage = "publish"
    on_error = "disable"

    def __init__(
        self,
        path: str | Path = SNAPSHOT_NAME,
        interval_seconds: float = 1.0,
        *,
        wall: Callable[[], float] = time.time,
    ) -> None:
        require_seconds("interval_seconds", interval_seconds)
        self.path = str(path)
        self.interval_seconds = interval_seconds
        self.failures = 0
        self._wall = wall
        self._watch_game: Live = None
        self._ticker: Ticker | None = None

    def on_training_start(self, ctx: HookContext) -> None:
        """Write the first position, where that of an earlier attempt may be, and go on from there."""
        self._watch_game = getattr(ctx.trainer, "watch_game", None)  # of a trainer that plays games
        if self._watch_game is None:
            return
        look, readings = self._watch_game().look, ctx.readings

        def write() -> None:
            self._write(look(), int(readings[ENV_STEPS]), RUNNING)

        write()
        self._ticker = Ticker("hookloop-game-snapshot", self.interval_seconds, write)
        self._ticker.start()

    def on_training_end(self, ctx: HookContext) -> None:
        """Write the last position, and how the run ended."""
        self._end(ctx)

    def on_close(self, ctx: HookContext) -> None:
        """Do it again: another hook may have failed at the end, and the run with it."""
        self._end(ctx)

    def _end(self, ctx: HookContext) -> None:
        if self._ticker is not None:
            self._ticker.stop()
        if self._watch_game is not None:
            # A look of its own: a thread that the disk holds may be in the other one still.
            self._write(self._watch_game().look(), int(ctx.readings[ENV_STEPS]), ctx.outcome or "failed")

    def _write(self, view: GameView, env_steps: int, status: str) -> None:
        snapshot = GameSnapshot(view=view, wall_time=self._wall(), status=status, env_steps=env_steps)
        try:
            write_bytes(Path(self.path), snapshot_bytes(snapshot), is_private=False, is_durable=False)
        except (OSError, ValueError) as error:  # the disk refuses, or a figure is none that JSON has
            self.failures += 1
            if self.failures == 1:
                log.warning("the game cannot be written for others to see, and is tried again: %s", error)
