"""However rows are batched and wherever a run is resumed, its tables are those of a run that was never stopped."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hookloop.stats import StatsReader, StatsStore
from tests.unit.stats.logged import RUN, live_tables, log_epoch, reading

EPOCHS = 6


@cache
def uninterrupted(epochs: int) -> dict[str, list[tuple[Any, ...]]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "whole.sqlite"
        with StatsStore(path, run_id=RUN) as store:
            store.begin_attempt(1, reading(0))
            for epoch in range(1, epochs + 1):
                log_epoch(store, epoch)
        return live_tables(path)


@settings(max_examples=15, deadline=None)
@given(
    batch_rows=st.integers(1, 40),
    lives=st.lists(st.tuples(st.integers(0, EPOCHS), st.integers(0, EPOCHS), st.booleans()), max_size=4),
    last_life=st.tuples(st.integers(0, EPOCHS - 1), st.integers(1, EPOCHS)),
)
def test_any_batching_and_any_resume_give_the_table_of_an_uninterrupted_run(
    batch_rows: int, lives: list[tuple[int, int, bool]], last_life: tuple[int, int]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stats.sqlite"
        furthest = begin = until = 0
        for attempt, (back_to, run_until, flushes) in enumerate([*lives, (*last_life, True)], start=1):
            begin = min(back_to, furthest)
            until = max(run_until, begin + 1) if attempt > len(lives) else run_until
            with StatsStore(path, run_id=RUN, batch_rows=batch_rows) as store:
                store.begin_attempt(attempt, reading(begin))
                for epoch in range(begin + 1, until + 1):
                    log_epoch(store, epoch)
                    if flushes:
                        store.flush()
            furthest = max(begin, until)

        assert live_tables(path) == uninterrupted(until)
        assert trackers_see_each_point_once(path)


def trackers_see_each_point_once(path: Path) -> bool:
    with StatsReader(path) as reader:
        seen: list[dict[str, Any]] = []
        cursor = None
        while True:
            rows, cursor = reader.rows_after(RUN, cursor, 5)
            if not rows:
                break
            seen.extend(rows)
        total = reader.sql("SELECT count(*) AS points FROM metrics")[0]["points"]
    epochs = [row["epoch"] for row in seen]
    return len(seen) == total and epochs == sorted(epochs)
