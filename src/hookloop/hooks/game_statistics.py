"""How the games of a run are played: when one is looked at, and who is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from hookloop.core import Always, HookContext, Schedule
from hookloop.core.schedule_text import as_schedule
from hookloop.errors import RegistrationError
from hookloop.selfplay.recent import RecentOutcomes
from hookloop.selfplay.statistics import GameStatistics

Live = Any
Plain = Any

PREFIX = "game/"
RECENT = "game/recent/"


class GameStatisticsHook:
    """Look at the game that ended last in each epoch, and log what the latest of these games have in common.

    Metrics are ``game/first_captures`` and so on, as far as the game has such things; how the latest games ended is
    ``game/recent/first_wins`` and so on, of all games. Training notices nothing.

    Args:
        schedule: When to look: a schedule, or a text such as "every 10 epochs".
        window: The latest games that figures are of.
    """

    name = "game_statistics"
    on_error = "disable"

    def __init__(self, schedule: Schedule | str = "every 1 epochs", window: int = 100) -> None:
        if window < 1:
            raise RegistrationError(f"Statistics of games are of at least 1 game, got window={window}.")
        self.schedule = {"epoch_end": as_schedule(schedule), "epoch_start": Always()}
        self.statistics = GameStatistics(window)
        self.recent = RecentOutcomes(window)
        self._seen: Live = None

    def on_training_start(self, ctx: HookContext) -> None:
        """Begin with how games stand, which is not at zero after a resume."""
        games = _games(ctx)
        if games is not None:
            self.recent.begin(games.tally)
            self._show(ctx)

    def on_epoch_start(self, ctx: HookContext) -> None:
        """Remember which game ended before this epoch: only what ends within it is looked at, resumed or not."""
        games = _games(ctx)
        self._seen = None if games is None else games.last_ended

    def on_epoch_end(self, ctx: HookContext) -> None:
        """Look at the game that ended last in this epoch, and log."""
        games = _games(ctx)
        if games is None:
            return
        self.recent.note(games.tally)
        recent = self.recent.counts()
        found = {f"{RECENT}{name}": rate for name, rate in recent.rates().items()}
        if found:
            found[f"{RECENT}count"] = float(recent.games)
        if self._look(games, int(ctx.readings["env_steps"])):
            found |= {f"{PREFIX}{name}": value for name, value in self.statistics.summary().figures.items()}
        ctx.log(found)
        self._show(ctx)

    def state_dict(self) -> dict[str, Plain]:
        """Return the figures of the latest games, and how games had ended some time ago."""
        return {"statistics": self.statistics.state_dict(), "recent": self.recent.state_dict()}

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on from a saved state."""
        self.statistics.load_state_dict(saved["statistics"])
        self.recent.load_state_dict(saved["recent"])

    def _look(self, games: Live, played_moves: int) -> bool:
        """Look at the game that ended last, and tell whether there was one to look at."""
        ended = games.last_ended
        if ended is None or ended is self._seen or not self.statistics.has_room(played_moves):
            return False
        # Here and not above: a hook that is only listed needs no torch.
        from hookloop.selfplay.game_figures import figures_of

        self.statistics.add(figures_of(games.game, ended))
        return True

    def _show(self, ctx: HookContext) -> None:
        trainer: Live = ctx.trainer
        trainer.summary = replace(self.statistics.summary(), recent=asdict(self.recent.counts()))


def _games(ctx: HookContext) -> Live:
    """Return the games of a trainer that plays some."""
    return getattr(ctx.trainer, "games", None)
