"""Everything that is known of a run, gathered from its folder and its statistics."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookloop.boards.snapshot import read_snapshot, snapshot_as_plain
from hookloop.checkpoints.store import Checkpoint, CheckpointStore
from hookloop.cli.changes import changes_between
from hookloop.errors import ConfigError, SnapshotError, StatsError, UnknownNameError
from hookloop.runs.folder import RunConfig, RunFolder
from hookloop.runs.standing import KILLED, NO_STATISTICS, how_it_stands, open_stats
from hookloop.runs.tags import read_tags

if TYPE_CHECKING:
    from hookloop.stats import StatsReader
    from hookloop.stats.reader import Point

Details = dict[str, Any]
_ENDS = ("stop", "exception")
_CLOCKS = ("epoch", "env_steps", "optimizer_steps", "episodes", "seconds")


def details(folder: RunFolder) -> Details:
    """Return what a run is, how it went, what it keeps, and what to do next."""
    config = folder.read_config()
    found: Details = {
        "run": folder.name,
        "path": str(folder.path),
        "run_id": config.run_id,
        "recipe": config.recipe,
        "seed": config.seed,
        "threads": config.threads,
        "step_clock": config.step_clock,
        "tags": read_tags(folder.path),
        "size_bytes": bytes_below(folder.path),
        "settings": config.settings,
        "differs_from_recipe": _differences(config),
        "changed_on_resume": config.changes,
        "checkpoints": _checkpoints(folder),
        "game": _game(folder),
        **_without_statistics(),
    }
    try:
        with open_stats(folder) as reader:
            found.update(_measured(folder, config.run_id, reader))
    except StatsError as error:
        found["ended_because"] = str(error)
    found["next"] = _next(folder, config, found["status"])
    return found


def bytes_below(path: Path) -> int:
    """Return how much a folder takes; what a link leads to is elsewhere."""
    total = 0
    for place, _, files in os.walk(path):
        for name in files:
            try:
                total += os.lstat(os.path.join(place, name)).st_size
            except FileNotFoundError:
                continue  # the run has tidied up meanwhile
    return total


def extreme(points: Sequence[Point], mode: str) -> Point | None:
    """Return the best point of a curve, the first if there are several; None if nothing is finite."""
    finite = [point for point in points if math.isfinite(point.value)]
    if not finite:
        return None
    return (max if mode == "max" else min)(finite, key=lambda point: point.value)


def _without_statistics() -> Details:
    return {
        "status": NO_STATISTICS,
        "ended_because": "",
        "created": None,
        "clocks": dict.fromkeys(_CLOCKS, 0),
        "score": None,
        "attempts": [],
        "failures": [],
        "events": [],
        "evaluations": [],
    }


def _measured(folder: RunFolder, run_id: str, reader: StatsReader) -> Details:
    row, last, events = reader.run(run_id), reader.last_epoch(run_id), reader.events(run_id)
    status = how_it_stands(folder, row["status"])
    ends = [each for each in events if each["what"] in _ENDS]
    because = f"{ends[-1]['why']} ({ends[-1]['who']})" if ends and status in ("stopped", "failed") else ""
    retention = folder.read_retention()
    points = reader.metric(run_id, retention.metric)
    best = extreme(points, retention.mode)
    score = {
        "metric": retention.metric,
        "last": points[-1].value if points else None,
        "best": best.value if best else None,
        "best_at_env_steps": best.env_steps if best else None,
        "best_at_epoch": best.epoch if best else None,
    }
    attempts = reader.attempts(run_id)
    if attempts and attempts[-1]["outcome"] is None and status == KILLED:
        attempts[-1]["outcome"] = KILLED
    return {
        "status": status,
        "ended_because": because,
        "created": row["created"],
        "clocks": {name: last[name] if last else 0 for name in _CLOCKS},
        "score": score,
        "attempts": attempts,
        "failures": latest_failures(reader.hook_failures(run_id)),
        "events": events,
        "evaluations": reader.evaluations(run_id),
    }


def latest_failures(rows: Sequence[Details]) -> list[Details]:
    """Return what is known of each hook's failures: the latest attempt has counted those before it."""
    newest = {row["hook"]: row for row in sorted(rows, key=lambda row: row["attempt"])}
    return [row for row in newest.values() if row["count"]]


def _differences(config: RunConfig) -> list[Details] | None:
    """Return the settings that are not the recipe's; None if there is no such recipe here."""
    from hookloop.recipes import find_recipe

    try:
        given = find_recipe(config.recipe).model_dump(mode="json")
    except (UnknownNameError, ConfigError):
        return None
    return [
        {"setting": each.path, "recipe": each.before, "run": each.after}
        for each in changes_between(given, config.settings)
    ]


def _checkpoints(folder: RunFolder) -> list[Details]:
    store, retention = CheckpointStore(folder.checkpoints), folder.read_retention()
    found = store.look_at_all()
    best = retention.best([each.manifest for each in found if isinstance(each, Checkpoint)])
    best_name, pins = best[0].name if best else None, store.pins()
    return [
        {
            "name": each.name,
            "kind": each.manifest.kind,
            "epoch": each.manifest.epochs,
            "score": each.manifest.metrics.get(retention.metric),
            "size_bytes": each.manifest.total_bytes,
            "exactness": each.manifest.exactness,
            "is_best": each.name == best_name,
            "is_pinned": each.name in pins,
        }
        for each in found
        if isinstance(each, Checkpoint)
    ] + [{"name": each.name, "kind": f"damaged: {each.fault}"} for each in found if not isinstance(each, Checkpoint)]


def _game(folder: RunFolder) -> Details | None:
    """Return the game as the run wrote it last; None if it plays none, or what is there is no game."""
    try:
        return snapshot_as_plain(read_snapshot(folder.game_file))
    except (OSError, SnapshotError):
        return None


def _next(folder: RunFolder, config: RunConfig, status: str) -> list[str]:
    if status == "running":
        return [f"hookloop metrics {folder.path}", f"hookloop watchdog {folder.path} --once"]
    if status in ("completed", "stopped"):
        return [f"hookloop report {folder.path}", f"hookloop train {config.recipe} --seed {config.seed + 1}"]
    return [f"hookloop train --resume {folder.path}"]
