"""Who is told of an evaluation: the metrics, the statistics, the folder of replays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from hookloop.core import HookContext

if TYPE_CHECKING:
    from hookloop.evaluation.results import EvaluationResult
    from hookloop.stats.log import StatsLog


class ReplaySink(Protocol):
    """Takes recorded episodes."""

    def keep(self, result: EvaluationResult) -> Mapping[str, str]:
        """Keep the episodes that a result holds records of, and return where they are, by name, in their order."""
        ...


def log_late(ctx: HookContext, metrics: Mapping[str, float], clocks: Mapping[str, float]) -> None:
    """Log metrics of weights that training has left behind, with the clocks they belong to."""
    row: dict[str, Any] = {"hook": ctx.hook, "event": ctx.event, "clocks": dict(clocks), "values": dict(metrics)}
    ctx.state.pending_metrics.append(row)


def log_result(ctx: HookContext, result: EvaluationResult) -> None:
    """Log a result to the statistics of the run, if it has any."""
    client: StatsLog | None = ctx.services.get("stats_client")
    if client is not None:
        write_result(client, result)


def write_result(client: StatsLog, result: EvaluationResult) -> None:
    """Write a row for each score, and one for each recorded episode."""
    for name, (category, simulation), score in result.rows():
        client.log_evaluation(
            name,
            score.statistics(),
            result.clocks,
            score=score.mean,
            episodes=score.episodes,
            checkpoint=result.checkpoint,
            category=category,
            simulation=simulation,
            policy_version=result.policy_version,
            seed=result.seed,
            greedy=result.greedy,
            failed=score.failed,
            why=score.why,
            evaluation_seconds=result.seconds,
            **({"sample": dict(score.sample)} if score.sample else {}),
        )
    for (name, uri), (_, episode) in zip(result.replays.items(), result.records, strict=bool(result.replays)):
        client.log_replay(name, result.clocks, uri=uri, length=episode.length, **{"return": episode.return_})
