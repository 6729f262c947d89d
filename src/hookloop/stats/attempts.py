"""The beginning and the end of an attempt, each in one transaction; a beginning moves the future that was given up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, func, insert, literal, or_, select, update

from hookloop.stats.schema import (
    ATTEMPTS,
    CLOCKED,
    EPOCHS,
    POINTS,
    RUNS,
    SERIES,
    SUPERSEDED,
)

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, Table

OF_THE_RUN = ("name", "recipe", "seed", "config", "tags")


def open_attempt(connection: Connection, run_id: str, row: Mapping[str, Any], run: Mapping[str, Any]) -> int:
    """Add an attempt and the run if it is new; return the attempt's number, which no other attempt has.

    A process that was killed before its first checkpoint leaves no trace in the state of the run, so the next one
    asks for the same number.
    """
    taken = connection.execute(select(func.max(ATTEMPTS.c.attempt)).where(ATTEMPTS.c.run_id == run_id)).scalar()
    attempt = max(row["attempt"], 1 + (taken or 0))
    # One that has not said how it ended was killed, or it would not have let go of the run.
    silent = (ATTEMPTS.c.run_id == run_id) & ATTEMPTS.c.outcome.is_(None)
    connection.execute(update(ATTEMPTS).where(silent).values(outcome="killed"))
    connection.execute(insert(ATTEMPTS).values(**{**row, "run_id": run_id, "attempt": attempt}))
    if connection.execute(select(RUNS.c.run_id).where(RUNS.c.run_id == run_id)).scalar() is None:
        fresh = {"name": run_id, "tags": "[]", "created": row["started"], "status": "running", **run}
        connection.execute(insert(RUNS).values(run_id=run_id, **fresh))
    else:
        connection.execute(update(RUNS).where(RUNS.c.run_id == run_id).values(status="running", **run))
    return attempt


def move_aside(connection: Connection, run_id: str, clocks: Mapping[str, int], attempt: int) -> None:
    """Move every row beyond the clocks to the archive, marked with the attempt that gave it up.

    The cursors of trackers stay: what a tracker was told once it is not told again.
    """
    if attempt == 1 and not _has_rows(connection, run_id):
        return
    for table in CLOCKED:
        archive = SUPERSEDED[table.name]
        beyond = _of_run(table, run_id) & _beyond(table, clocks)
        source = select(literal(attempt).label("superseded_by"), *table.c).where(beyond)
        names = ["superseded_by", *(each.name for each in table.c)]
        connection.execute(insert(archive).from_select(names, source))
        connection.execute(delete(table).where(beyond))


def close_attempt(connection: Connection, run_id: str, attempt: int, outcome: str, ended: float) -> None:
    """Record how an attempt ended."""
    mine = (ATTEMPTS.c.run_id == run_id) & (ATTEMPTS.c.attempt == attempt)
    connection.execute(update(ATTEMPTS).where(mine).values(outcome=outcome, ended=ended))
    connection.execute(update(RUNS).where(RUNS.c.run_id == run_id).values(status=outcome))


def end_of_run(connection: Connection, run_id: str) -> tuple[int, int, int]:
    """Return a run's latest attempt and epoch, and the first sequence that no row after that epoch has."""
    attempt = connection.execute(select(func.max(ATTEMPTS.c.attempt)).where(ATTEMPTS.c.run_id == run_id)).scalar()
    epoch = connection.execute(select(func.max(EPOCHS.c.epoch)).where(EPOCHS.c.run_id == run_id)).scalar()
    used = [-1]
    for table in CLOCKED:
        if "sequence" in table.c:
            mine = _of_run(table, run_id) & (table.c.after_epoch == (epoch or 0))
            found = connection.execute(select(func.max(table.c.sequence)).where(mine)).scalar()
            used.append(-1 if found is None else int(found))
    return int(attempt or 1), int(epoch or 0), 1 + max(used)


def _has_rows(connection: Connection, run_id: str) -> bool:
    """Say whether a run has anything, without a look at every table: the start of a new run should not wait."""
    of_run = [select(literal(1)).where(table.c.run_id == run_id).exists() for table in CLOCKED if table is not POINTS]
    of_run.append(select(literal(1)).where(SERIES.c.run_id == run_id).exists())
    return bool(connection.execute(select(or_(*of_run))).scalar())


def _of_run(table: Table, run_id: str) -> ColumnElement[bool]:
    if table is POINTS:
        return POINTS.c.series_id.in_(select(SERIES.c.series_id).where(SERIES.c.run_id == run_id))
    return table.c.run_id == run_id


def _beyond(table: Table, clocks: Mapping[str, int]) -> ColumnElement[bool]:
    """Say which rows a run that goes on from these clocks will log again, or never reach.

    Rows at exactly these clocks stay: what was logged before the checkpoint is not logged again, and what is logged
    again has the same key and takes the old row's place.
    """
    if table is EPOCHS:
        return EPOCHS.c.epoch > clocks["epochs"]
    limits = {
        "after_epoch": "epochs",
        "epoch": "epochs",
        "env_steps": "env_steps",
        "optimizer_steps": "optimizer_steps",
    }
    return or_(*(table.c[column] > clocks[clock] for column, clock in limits.items() if clock in clocks))
