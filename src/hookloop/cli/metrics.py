"""``hookloop runs``, ``metrics`` and ``query``: what runs have measured, while they train and after."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookloop.cli.run_folder import CONFIG_FILE, RunFolder, find_run
from hookloop.display import sparkline
from hookloop.errors import ConfigError, StatsError, UnknownNameError

if TYPE_CHECKING:
    from hookloop.stats import StatsReader
    from hookloop.stats.reader import Point

_RUN_COLUMNS = ("run", "recipe", "seed", "status", "steps", "return", "began")


def metrics(run: str, *key: str, runs_dir: Path = Path("runs"), csv: bool = False, json: bool = False) -> int:
    """Show what a run has measured.

    Args:
        run: The run's name, or its path.
        key: Metrics to show, such as return/mean; all of them by default.
        runs_dir: The folder of all runs.
        csv: Write every point as a line of CSV.
        json: Write every point as JSON.
    """
    folder = find_run(runs_dir, run)
    run_id = folder.read_config().run_id
    with _reader(folder) as reader:
        known = reader.keys(run_id)
        for name in key:
            if name not in known:
                raise UnknownNameError("metric", name, known, where=f"in the run {folder.name!r}")
        curves = {name: reader.metric(run_id, name) for name in key or known}
    if json:
        _write_json({name: [point._asdict() for point in points] for name, points in curves.items()})
    elif csv:
        _write_csv(curves)
    else:
        _show_curves(curves)
    return 0


def runs(*, runs_dir: Path = Path("runs"), json: bool = False) -> int:
    """List the runs and how they stand.

    Args:
        runs_dir: The folder of all runs.
        json: Write them as JSON.
    """
    found = [_summary(RunFolder(file.parent)) for file in sorted(runs_dir.glob(f"*/{CONFIG_FILE}"))]
    if json:
        _write_json(found)
    elif not found:
        _say(f"no run in {runs_dir} yet")
    else:
        _show_table(_RUN_COLUMNS, [[_short(each[column]) for column in _RUN_COLUMNS] for each in found])
    return 0


def query(run: str, sql: str, *, runs_dir: Path = Path("runs"), limit: int = 1000, json: bool = False) -> int:
    """Ask the statistics of a run in SQL; nothing can be changed that way.

    Args:
        run: The run's name, or its path.
        sql: The question, such as "SELECT key, max(value) FROM metrics GROUP BY key".
        runs_dir: The folder of all runs.
        limit: Rows to show at most.
        json: Write the rows as JSON.
    """
    if limit < 1:
        raise ConfigError(f"--limit must be at least 1 row, got {limit}.")
    with _reader(find_run(runs_dir, run)) as reader:
        rows = reader.sql(sql, limit)
    if json:
        _write_json(rows)
    elif rows:
        _show_table(list(rows[0]), [[_short(value) for value in row.values()] for row in rows])
    return 0


def _reader(folder: RunFolder) -> StatsReader:
    from hookloop.stats import StatsReader

    url = folder.stats_url
    if isinstance(url, Path) and not url.exists():
        raise StatsError(f"The run {folder.name!r} has no statistics yet: there is no {url}.")
    return StatsReader(url)


def _summary(folder: RunFolder) -> dict[str, Any]:
    config = folder.read_config()
    found: dict[str, Any] = dict.fromkeys(_RUN_COLUMNS)
    found.update(run=folder.name, recipe=config.recipe, seed=config.seed, status="no statistics")
    try:
        with _reader(folder) as reader:
            row = reader.run(config.run_id)
            epochs, latest = reader.epochs(config.run_id), reader.latest(config.run_id)
    except StatsError:
        return found
    found["status"] = row["status"]
    found["steps"] = epochs[-1]["env_steps"] if epochs else 0
    found["return"] = latest["return/mean"].value if "return/mean" in latest else None
    found["began"] = datetime.fromtimestamp(row["created"], UTC).strftime("%Y-%m-%d %H:%M")
    return found


def _show_curves(curves: dict[str, list[Point]]) -> None:
    rows: list[list[str]] = []
    for name, points in curves.items():
        if points:
            values = [point.value for point in points]
            figures = [_short(value) for value in (values[-1], min(values), max(values), points[-1].env_steps)]
            rows.append([name, *figures, sparkline(values)])
    _show_table(("metric", "last", "min", "max", "steps", "curve"), rows)


def _write_csv(curves: dict[str, list[Point]]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(("key", "epoch", "env_steps", "optimizer_steps", "seconds", "value"))
    for name, points in curves.items():
        writer.writerows((name, *point) for point in points)


def _write_json(found: object) -> None:
    _say(json.dumps(found))


def _show_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[k]) for row in (columns, *rows)) for k in range(len(columns))]
    for row in (columns, *rows):
        _say("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


def _short(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
