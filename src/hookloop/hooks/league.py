"""The strength of a network that learns by self-play: when it is measured, and who is told."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hookloop.core import Always, HookContext, Schedule, When
from hookloop.core.schedule_text import as_schedule
from hookloop.hooks.evaluation import is_last_epoch

if TYPE_CHECKING:
    from hookloop.selfplay.league import League, Round
    from hookloop.stats.log import StatsLog

Plain = Any

PREFIX = "eval/"
PROMOTED = "promoted"


class LeagueHook:
    """Play matches against fixed opponents and past versions, and rate the network by them.

    It plays with a copy, and draws from random streams of its own: training goes on as it would without. Scores and
    rating are metrics of the same epoch (``eval/random/score``, ``eval/rating``) and stand in the checkpoint of the
    same weights; every match, rating and promotion is a row in the statistics.

    Args:
        league: What plays and rates.
        schedule: When to, such as "every 20 epochs"; the last epoch always is evaluated.
    """

    name = "league"
    stage = "evaluate"
    serves = ("evaluation",)
    on_error = "warn"  # an observer: a match that fails is told of, and training goes on

    def __init__(self, league: League, schedule: Schedule | str = "every 20 epochs") -> None:
        self.league = league
        self.latest: Round | None = None
        """What the latest evaluation has found; None after a resume until there is one."""
        self.schedule = {"epoch_end": as_schedule(schedule) | When(is_last_epoch), "epoch_start": Always()}
        self._scores: dict[str, float] = {}

    def on_epoch_start(self, ctx: HookContext) -> None:
        """Forget the scores: the weights are about to change."""
        for name in self._scores:
            ctx.state.eval_scores.pop(name, None)
        self._scores = {}

    def on_epoch_end(self, ctx: HookContext) -> None:
        """Evaluate."""
        if ctx.loop is None:
            return
        with ctx.loop.evaluation(self.league) as metrics:
            found = self.league.play_round(ctx.model, ctx.state.epoch, ctx.state.seed)
            ctx.evaluation = self.latest = found
            metrics.update(_named(found))
        self._scores = {name: value for name, value in found.metrics().items() if math.isfinite(value)}
        ctx.state.eval_scores |= self._scores
        ctx.metrics.update(_named(found))
        client: StatsLog | None = ctx.services.get("stats_client")
        if client is not None:
            write_round(client, found, ctx.state.clocks.reading())

    def state_dict(self) -> dict[str, Plain]:
        """Return all results, the champion and the past versions, and the scores of the latest weights."""
        return {"league": self.league.state_dict(), "scores": dict(self._scores)}

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on from a saved state."""
        self.league.load_state_dict(saved["league"])
        self._scores = dict(saved["scores"])


def write_round(client: StatsLog, found: Round, clocks: Mapping[str, float]) -> None:
    """Write a row for each match, for each rating that the round has changed, and for a promotion."""
    for opponent, score in found.scores.items():
        counts = {"mean": score.mean, "wins": score.wins, "draws": score.draws, "losses": score.losses}
        client.log_evaluation(
            f"match/{opponent}", counts, clocks, episodes=score.games, player=found.version, opponent=opponent
        )
    for player in dict.fromkeys((found.version, found.champion, *found.fixed)):
        rating = found.ratings[player]
        client.log_rating(player, rating.elo, clocks, deviation=rating.deviation, games=found.games[player])
    won = found.promotion
    if won is not None:
        client.log_lineage(won.version, won.parent, PROMOTED, clocks, rating=won.elo, score=won.score)


def _named(found: Round) -> dict[str, float]:
    return {f"{PREFIX}{name}": value for name, value in found.metrics().items()}
