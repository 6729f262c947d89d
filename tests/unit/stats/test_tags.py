from __future__ import annotations

from pathlib import Path

import pytest

from hookloop.errors import StatsError
from hookloop.stats import StatsReader, StatsStore
from hookloop.stats.tags import write_tags
from tests.unit.stats.logged import RUN, log_epoch, reading


def test_tags_are_written_while_the_run_writes_and_stay_when_it_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "stats.sqlite"
    with StatsStore(path, run_id=RUN) as store:
        store.begin_attempt(1, reading(0))
        log_epoch(store, 1)
        write_tags(path, RUN, lambda: ["good"])
        log_epoch(store, 2)
        store.flush()
        store.begin_attempt(2, reading(1))

    found = StatsReader(path)
    assert found.run(RUN)["tags"] == ["good"]
    assert [row["epoch"] for row in found.epochs(RUN)] == [1]


def test_tags_are_read_when_nobody_else_can_write_them(tmp_path: Path) -> None:
    path = tmp_path / "stats.sqlite"
    with StatsStore(path, run_id=RUN) as store:
        store.begin_attempt(1, reading(0))
    kept = ["first"]

    def late() -> list[str]:
        kept.append("second")  # what was added while this one waited for its turn
        return kept

    write_tags(path, RUN, late)

    assert StatsReader(path).run(RUN)["tags"] == ["first", "second"]


def test_tags_of_another_run_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "stats.sqlite"
    for name in ("one", "two"):
        with StatsStore(path, run_id=name) as store:
            store.begin_attempt(1, reading(0), tags=["old"])

    write_tags(path, "one", lambda: ["new"])

    assert [row["tags"] for row in StatsReader(path).runs()] == [["new"], ["old"]]


def test_a_file_that_is_no_database_is_an_error_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "stats.sqlite"
    path.write_text("no database at all, but long enough to look like one" * 20)

    with pytest.raises(StatsError, match="cannot be written"):
        write_tags(path, RUN, list)
