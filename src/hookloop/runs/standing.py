"""The statistics of a run in a folder, and how the run stands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookloop.errors import ConfigError, MissingExtraError, RunLockedError, StatsError
from hookloop.runs.folder import RunFolder
from hookloop.runs.tags import read_tags
from hookloop.storage.lock import require_free

if TYPE_CHECKING:
    from hookloop.stats import StatsReader

KILLED = "killed"
NO_STATISTICS = "no statistics"
DAMAGED = "damaged"
SUMMARY = ("run", "recipe", "seed", "status", "steps", "metric", "score", "began", "tags")


def open_stats(folder: RunFolder) -> StatsReader:
    """Open the statistics of a run to read them."""
    from hookloop.stats import StatsReader

    url = folder.stats_url
    if isinstance(url, Path) and not url.exists():
        raise StatsError(f"The run {folder.name!r} has no statistics yet: there is no {url}.")
    return StatsReader(url)


def is_in_use(folder: RunFolder) -> bool:
    """Say whether a process trains the run, or changes it otherwise."""
    try:
        require_free(folder.path)
    except RunLockedError:
        return True
    return False


def how_it_stands(folder: RunFolder, status: str) -> str:
    """Return a run's status; one that should be running and is not was killed before it could say so."""
    return KILLED if status == "running" and not is_in_use(folder) else status


def summary(folder: RunFolder) -> dict[str, Any]:
    """Return a run as one line of a list, whatever state it is in."""
    found: dict[str, Any] = dict.fromkeys(SUMMARY)
    found |= {"run": folder.name, "status": DAMAGED, "tags": read_tags(folder.path)}
    try:
        config, metric = folder.read_config(), folder.read_retention().metric
        found |= {"recipe": config.recipe, "seed": config.seed, "status": NO_STATISTICS}
        with open_stats(folder) as reader:
            row, last = reader.run(config.run_id), reader.last_epoch(config.run_id)
            latest = reader.latest(config.run_id)
    except (ConfigError, StatsError, MissingExtraError, OSError):
        return found
    found["status"] = how_it_stands(folder, row["status"])
    found["steps"] = last[config.step_clock] if last else 0
    found |= {"metric": metric, "score": latest[metric].value if metric in latest else None}
    found["began"] = row["created"]
    return found
