"""``hookloop metrics`` and ``query``: what runs have measured, while they train and after."""

from __future__ import annotations

import csv
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hookloop.cli.tables import note, short, show_table, write_json
from hookloop.display import sparkline
from hookloop.errors import ConfigError, UnknownNameError
from hookloop.runs.folder import LATEST, find_run
from hookloop.runs.standing import open_stats

if TYPE_CHECKING:
    from hookloop.stats.reader import Point


def metrics(run: str, *key: str, runs_dir: Path = Path("runs"), csv: bool = False, json: bool = False) -> int:
    """Show what a run has measured.

    Args:
        run: The run's name, the beginning of it, its path, or latest.
        key: Metrics to show, such as return/mean; all of them by default.
        runs_dir: The folder of all runs.
        csv: Write every point as a line of CSV.
        json: Write every point as JSON.
    """
    folder = find_run(runs_dir, run)
    config = folder.read_config()
    run_id = config.run_id
    with open_stats(folder) as reader:
        known = reader.keys(run_id)
        for name in key:
            if name not in known:
                raise UnknownNameError("metric", name, known, where=f"in the run {folder.name!r}")
        curves = {name: reader.metric(run_id, name) for name in key or known}
    if json:
        write_json({name: [point._asdict() for point in points] for name, points in curves.items()})
    elif csv:
        _write_csv(curves)
    else:
        _show_curves(curves, config.step_clock)
    return 0


def query(
    run: str, sql: str | None = None, *, runs_dir: Path = Path("runs"), limit: int = 1000, json: bool = False
) -> int:
    """Ask the statistics of a run in SQL; nothing can be changed that way.

    Args:
        run: The run's name, the beginning of it, its path, or latest, which may be left out.
        sql: The question, such as "SELECT key, max(value) FROM metrics GROUP BY key".
        runs_dir: The folder of all runs.
        limit: Rows to show at most.
        json: Write the rows as JSON.
    """
    if limit < 1:
        raise ConfigError(f"--limit must be at least 1 row, got {limit}.")
    folder = find_run(runs_dir, LATEST if sql is None else run)
    if sql is None:
        note(f"asking the latest run, {folder.name}")
    with open_stats(folder) as reader:
        rows = reader.sql(run if sql is None else sql, limit)
    if json:
        write_json(rows)
    elif rows:
        show_table(list(rows[0]), [[short(value) for value in row.values()] for row in rows])
    return 0


def _show_curves(curves: dict[str, list[Point]], step_clock: str) -> None:
    rows: list[list[str]] = []
    for name, points in curves.items():
        if points:
            values = [point.value for point in points]
            finite = [value for value in values if math.isfinite(value)] or [math.nan]
            steps = getattr(points[-1], step_clock)
            figures = [short(value) for value in (values[-1], min(finite), max(finite), steps)]
            rows.append([name, *figures, sparkline(values)])
    show_table(("metric", "last", "min", "max", "steps", "curve"), rows)


def _write_csv(curves: dict[str, list[Point]]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(("key", "epoch", "env_steps", "optimizer_steps", "seconds", "value"))
    for name, points in curves.items():
        writer.writerows((name, *point) for point in points)
