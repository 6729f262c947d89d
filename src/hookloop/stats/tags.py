"""The tags of a run in its statistics: a copy, for queries; whoever keeps the tags writes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from sqlalchemy import select, update
from sqlalchemy.exc import SQLAlchemyError

from hookloop.errors import StatsError
from hookloop.stats.database import brief, shown, writing_engine
from hookloop.stats.rows import as_json
from hookloop.stats.schema import RUNS


def write_tags(url_or_path: str | Path, run_id: str, read: Callable[[], Sequence[str]]) -> None:
    """Write down the tags of a run; the run's own writer may be at work, and waits for a moment at most.

    Args:
        url_or_path: What the store was given; the database must exist.
        run_id: The run.
        read: Returns the tags. Called while nobody else can write them, so that the last to write has the newest.
    """
    engine = writing_engine(url_or_path)
    mine = RUNS.c.run_id == run_id
    try:
        with engine.begin() as connection:
            connection.execute(select(RUNS.c.run_id).where(mine).with_for_update())
            connection.execute(update(RUNS).where(mine).values(tags=as_json(list(read()))))
    except SQLAlchemyError as error:
        raise StatsError(f"The statistics in {shown(url_or_path)} cannot be written: {brief(error)}.") from error
    finally:
        engine.dispose()
