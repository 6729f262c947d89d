"""The metrics of whole epochs in order, for trackers that are told everything once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from hookloop.stats.rows import joined
from hookloop.stats.schema import ATTEMPTS, EPOCHS, POINTS, SERIES

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection

WINDOW_EPOCHS = 256  # counted at a time: a tracker that is far behind must not count the whole run at each call
ORDER = (
    POINTS.c.after_epoch,
    POINTS.c.epoch,
    POINTS.c.env_steps,
    POINTS.c.optimizer_steps,
    SERIES.c.key,
    SERIES.c.hook,
    SERIES.c.event,
    POINTS.c.sequence,
)


def rows_after(connection: Connection, run_id: str, cursor: int, limit: int) -> tuple[list[dict[str, Any]], int]:
    """Return the metrics of the epochs after ``cursor``, and the cursor for the next call.

    An epoch comes whole or not at all, and so at least one comes however small the limit is. What was logged after the
    last epoch comes once the attempt has ended.
    """
    mine = POINTS.c.series_id.in_(select(SERIES.c.series_id).where(SERIES.c.run_id == run_id))
    until, rows = _chosen(connection, run_id, mine, cursor, limit)
    if not rows:
        return [], until
    query = (
        select(POINTS, SERIES.c.key, SERIES.c.hook, SERIES.c.event)
        .join(SERIES, SERIES.c.series_id == POINTS.c.series_id)
        .where(mine, POINTS.c.after_epoch >= cursor, POINTS.c.after_epoch < until)
        .order_by(*ORDER)
    )
    return [_row(found._mapping) for found in connection.execute(query)], until


def _chosen(connection: Connection, run_id: str, mine: ColumnElement[bool], cursor: int, limit: int) -> tuple[int, int]:
    """Return the epoch up to which rows fit the limit, and how many they are."""
    end, until, rows = _end(connection, run_id), cursor, 0
    while until < end:
        window = min(end, until + WINDOW_EPOCHS)
        counted = (
            select(POINTS.c.after_epoch, func.count())
            .where(mine, POINTS.c.after_epoch >= until, POINTS.c.after_epoch < window)
            .group_by(POINTS.c.after_epoch)
            .order_by(POINTS.c.after_epoch)
        )
        for after, count in connection.execute(counted).all():
            if rows and rows + int(count) > limit:
                return until, rows
            until, rows = int(after) + 1, rows + int(count)
        until = window
    return until, rows


def _end(connection: Connection, run_id: str) -> int:
    """Return the epoch from which on nothing is complete."""
    last = connection.execute(select(func.max(EPOCHS.c.epoch)).where(EPOCHS.c.run_id == run_id)).scalar()
    newest = select(ATTEMPTS.c.ended).where(ATTEMPTS.c.run_id == run_id).order_by(ATTEMPTS.c.attempt.desc()).limit(1)
    has_ended = connection.execute(newest).scalar() is not None
    return (0 if last is None else int(last)) + (1 if has_ended else 0)


def _row(found: Any) -> dict[str, Any]:
    names = ("epoch", "env_steps", "optimizer_steps", "seconds", "hook", "event", "key")
    return {**{name: found[name] for name in names}, "value": joined(found["value"], found["nonfinite"])}
