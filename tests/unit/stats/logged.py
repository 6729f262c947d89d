"""A small run whose statistics are known, logged as hooks would."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hookloop.stats import StatsReader, StatsStore

RUN = "run-1"


def reading(epoch: int, env_steps: int | None = None) -> dict[str, float]:
    """Return the clocks after so many epochs of ten steps."""
    done = 10 * epoch if env_steps is None else env_steps
    return {
        "epochs": epoch,
        "env_steps": done,
        "optimizer_steps": done // 5,
        "episodes": epoch,
        "policy_version": epoch,
        "seconds": done / 100,
    }


def metric_row(
    values: Mapping[str, Any], clocks: Mapping[str, float], event: str = "epoch_end", hook: str = "learner"
) -> dict[str, Any]:
    """Return a row as ``ctx.drain_metrics()`` hands it over."""
    return {"hook": hook, "event": event, "clocks": dict(clocks), "values": dict(values)}


def log_epoch(store: StatsStore, epoch: int) -> None:
    """Log everything an epoch of a run logs; the same numbers each time."""
    before, half, after = reading(epoch - 1), reading(epoch - 1, 10 * epoch - 5), reading(epoch)
    rows = [
        metric_row({"lr": 1.0 / epoch}, before, "epoch_start"),
        metric_row({"loss": epoch * 1.5, "noise": float("nan")}, half, "minibatch_end"),
        metric_row({"loss": epoch * 2.5}, half, "minibatch_end"),
        metric_row({"return": {"mean": epoch, "max": float("inf")}}, after),
    ]
    store.log_metrics(rows)
    store.log_episodes([{"clocks": half, "return": epoch + 0.5, "length": 7, "index": i} for i in range(2)])
    store.log_evaluation("greedy", {"mean": epoch / 2}, after, episodes=3)
    store.log_event("hook", "noticed", "it was time", after)
    store.log_game(["a", "b"], "a", half, moves=9)
    store.log_rating("a", 1500.0 + epoch, after)
    store.log_epoch(after)


TABLES = ("epochs", "metrics", "episodes", "evaluations", "checkpoints", "events", "games", "ratings")


def live_tables(database: str | Path, run_id: str = RUN) -> dict[str, list[tuple[Any, ...]]]:
    """Return everything a run has measured, wall time and attempts left out, in the order of the clocks."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    with StatsReader(database) as reader:
        for table in TABLES:
            rows = reader.sql(f"SELECT * FROM {table} WHERE run_id = '{run_id}'", 1_000_000)
            kept = [{key: row[key] for key in row if key not in ("wall_time", "attempt")} for row in rows]
            found[table] = sorted((tuple(row.values()) for row in kept), key=repr)
    return found
