"""Games of a run, kept as replays."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookloop.core import HookContext, Schedule
from hookloop.core.schedule_text import as_schedule
from hookloop.errors import RegistrationError

if TYPE_CHECKING:
    from hookloop.replays import ReplayFolder

Live = Any


class GameReplayHook:
    """Keep the game that ended last as a replay, now and then and at the end; training notices nothing.

    Args:
        folder: Where; such as ``replays`` in the folder of a run.
        schedule: When: a schedule, or a text such as "every 60 seconds".
        keep: The newest to keep.
    """

    name = "game_replays"
    stage = "publish"
    on_error = "disable"

    def __init__(self, folder: str | Path, schedule: Schedule | str = "every 60 seconds", keep: int = 20) -> None:
        if keep < 1:
            raise RegistrationError(f"A folder of replays keeps at least 1, got keep={keep}.")
        self.schedule = {"epoch_end": as_schedule(schedule)}
        self._folder, self._keep = Path(folder), keep
        self._kept: Live = None

    def on_epoch_end(self, ctx: HookContext) -> None:
        """Keep the last game."""
        self._record(ctx)

    def on_training_end(self, ctx: HookContext) -> None:
        """Keep the last game of all, unless the run has failed."""
        if ctx.outcome != "failed":
            self._record(ctx)

    def _record(self, ctx: HookContext) -> None:
        # Here and not above: a hook that is only listed needs no torch.
        from hookloop.hooks.replays import CLOCKS
        from hookloop.replays import Replay
        from hookloop.selfplay.recording import record_game
        from hookloop.selfplay.thinking import Thinker

        trainer: Live = ctx.trainer
        games = getattr(trainer, "games", None)
        if games is None or games.last_ended is None or games.last_ended is self._kept:
            return
        self._kept = games.last_ended
        about, arrays = record_game(games.last_ended, Thinker(games.game, trainer.policy))
        about |= {clock: ctx.readings[clock] for clock in CLOCKS if clock in ctx.readings}
        self._open().save((int(ctx.readings["env_steps"]), "training", "game"), Replay(about, arrays))

    def _open(self) -> ReplayFolder:
        from hookloop.replays import ReplayFolder

        return ReplayFolder(self._folder, keep=self._keep)
