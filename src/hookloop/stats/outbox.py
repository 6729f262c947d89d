"""The metrics of whole epochs in order, for trackers that are told everything once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import func, or_, select

from hookloop.stats.rows import joined
from hookloop.stats.schema import ATTEMPTS, EPOCHS, POINTS, SERIES

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection

WINDOW_EPOCHS = 256  # counted at a time: a tracker that is far behind must not count the whole run at each call
BEGINNINGS = ("training_start", "epoch_start", "rollout_start")  # logged at the clocks of the epoch before
TOLD = (
    POINTS.c.after_epoch,
    POINTS.c.epoch,
    POINTS.c.env_steps,
    POINTS.c.optimizer_steps,
    POINTS.c.seconds,
    SERIES.c.hook,
    SERIES.c.event,
    SERIES.c.key,
)
_NAMES = tuple(column.name for column in TOLD)
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
    last epoch comes once the attempt has ended; the cursor is then -1 - that epoch, so that a run that goes on from
    there gives the rest of its next epoch and not those rows again.
    """
    begin = cursor if cursor >= 0 else -1 - cursor
    mine = POINTS.c.series_id.in_(select(SERIES.c.series_id).where(SERIES.c.run_id == run_id))
    if cursor < 0:
        mine &= _not_told(run_id, begin)
    last, has_ended = _end(connection, run_id)
    until, rows = _chosen(connection, mine, begin, last + int(has_ended), limit)
    if not rows:
        return [], cursor if min(until, last) <= begin else min(until, last)
    query = (
        select(*TOLD, POINTS.c.value, POINTS.c.nonfinite)
        .join(SERIES, SERIES.c.series_id == POINTS.c.series_id)
        .where(mine, POINTS.c.after_epoch >= begin, POINTS.c.after_epoch < until)
        .order_by(*ORDER)
    )
    found = [_row(each) for each in connection.execute(query).all()]
    return found, -1 - last if found[-1]["after_epoch"] == last else min(until, last)


def _not_told(run_id: str, epoch: int) -> ColumnElement[bool]:
    """Say which rows were not logged between an epoch's end and the end of the attempt that stopped there."""
    of_run = select(SERIES.c.series_id).where(SERIES.c.run_id == run_id)
    done = (EPOCHS.c.run_id == run_id) & (EPOCHS.c.epoch == epoch)
    return or_(
        POINTS.c.after_epoch > epoch,
        POINTS.c.epoch > epoch,
        POINTS.c.env_steps > select(EPOCHS.c.env_steps).where(done).scalar_subquery(),
        POINTS.c.optimizer_steps > select(EPOCHS.c.optimizer_steps).where(done).scalar_subquery(),
        POINTS.c.series_id.in_(of_run.where(SERIES.c.event.in_(BEGINNINGS))),
    )


def _chosen(connection: Connection, mine: ColumnElement[bool], begin: int, end: int, limit: int) -> tuple[int, int]:
    """Return the epoch up to which rows fit the limit, and how many they are."""
    until, rows = begin, 0
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


def _end(connection: Connection, run_id: str) -> tuple[int, bool]:
    """Return the last epoch, and whether nothing more is logged after it."""
    last = connection.execute(select(func.max(EPOCHS.c.epoch)).where(EPOCHS.c.run_id == run_id)).scalar()
    newest = select(ATTEMPTS.c.ended).where(ATTEMPTS.c.run_id == run_id).order_by(ATTEMPTS.c.attempt.desc()).limit(1)
    return int(last or 0), connection.execute(newest).scalar() is not None


def _row(found: Any) -> dict[str, Any]:
    *told, value, nonfinite = found
    return {**dict(zip(_NAMES, told, strict=True)), "value": joined(value, nonfinite)}
