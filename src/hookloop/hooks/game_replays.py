"""Games of a run, kept as replays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookloop.core import Always, HookContext, Schedule
from hookloop.core.schedule_text import as_schedule
from hookloop.errors import RegistrationError

if TYPE_CHECKING:
    from hookloop.selfplay.games import EndedGame

Live = Any

TRAINING, MATCH = "training", "match"


class GameReplayHook:
    """Keep the game that ended last as a replay, now and then and at the end; training notices nothing.

    Args:
        folder: Where; such as ``replays`` in the folder of a run.
        schedule: When: a schedule, or a text such as "every 60 seconds".
        keep: The newest to keep.
        matches: Keep the game that ended last of each match of a ``LeagueHook``, too; of those as many besides.
    """

    name = "game_replays"
    stage = "publish"
    on_error = "disable"

    def __init__(
        self,
        folder: str | Path,
        schedule: Schedule | str = "every 60 seconds",
        keep: int = 20,
        *,
        matches: bool = True,
    ) -> None:
        if keep < 1:
            raise RegistrationError(f"A folder of replays keeps at least 1, got keep={keep}.")
        self.schedule = {"epoch_end": as_schedule(schedule), "evaluation_end": Always()}
        self._folder, self._keep, self._matches = Path(folder), keep, matches
        self._kept: Live = None

    def on_epoch_end(self, ctx: HookContext) -> None:
        """Keep the last game."""
        self._record(ctx)

    def on_training_end(self, ctx: HookContext) -> None:
        """Keep the last game of all, unless the run has failed."""
        if ctx.outcome != "failed":
            self._record(ctx)

    def on_evaluation_end(self, ctx: HookContext) -> None:
        """Keep the last game of each match, if matches were played."""
        found: Live = ctx.evaluation
        if not self._matches or not hasattr(found, "last_games") or not hasattr(ctx.trainer, "games"):
            return
        for opponent, (ended, seat) in found.last_games.items():
            names = (found.version, opponent) if seat == 0 else (opponent, found.version)
            self._save(ctx, ended, MATCH, opponent, names=names, opponent=opponent, player=found.version)

    def _record(self, ctx: HookContext) -> None:
        games = getattr(ctx.trainer, "games", None)
        if games is None or games.last_ended is None or games.last_ended is self._kept:
            return
        self._kept = games.last_ended
        self._save(ctx, games.last_ended, TRAINING, "game")

    def _save(
        self, ctx: HookContext, ended: EndedGame, kind: str, word: str, names: Sequence[str] = (), **more: str
    ) -> None:
        # Here and not above: a hook that is only listed needs no torch.
        from hookloop.hooks.replays import CLOCKS
        from hookloop.replays import Replay, ReplayFolder
        from hookloop.selfplay.recording import record_game
        from hookloop.selfplay.thinking import Thinker

        trainer: Live = ctx.trainer
        about, arrays = record_game(ended, Thinker(trainer.games.game, trainer.policy))
        about |= {clock: ctx.readings[clock] for clock in CLOCKS if clock in ctx.readings} | more
        for seat, who in zip(("first", "second"), names, strict=False):
            about[seat] = f"{about[seat]} ({who})"
        folder = ReplayFolder(self._folder, keep=self._keep, among=kind)
        folder.save((int(ctx.readings["env_steps"]), kind, word), Replay(about, arrays))
