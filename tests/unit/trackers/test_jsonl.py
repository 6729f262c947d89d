from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookloop.errors import TrackerError
from hookloop.trackers import EpochRows, JsonlTracker
from tests.unit.trackers.parts import RUN, epochs, point


def strict_lines(path: Path) -> list[dict[str, Any]]:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    return [json.loads(line, parse_constant=refuse) for line in path.read_text().splitlines()]


def written(path: Path, *numbers: int) -> int:
    tracker = JsonlTracker(path)
    cursor = tracker.open(RUN)
    tracker.log(epochs(*numbers))
    tracker.close()
    return cursor


def test_a_line_holds_what_was_measured_at_the_same_clocks(tmp_path: Path) -> None:
    written(tmp_path, 1)

    assert strict_lines(tmp_path / "metrics.jsonl") == [
        {"epoch": 0, "env_steps": 10, "optimizer_steps": 2, "seconds": 0.5, "metrics": {"lr": 1.0}},
        {"epoch": 1, "env_steps": 10, "optimizer_steps": 2, "seconds": 0.5, "metrics": {"loss": 1.0}},
        {"epoch": 1, "env_steps": 10, "optimizer_steps": 2, "seconds": 0.5, "metrics": {"loss": 1.5}, "cursor": 1},
    ]


def test_the_file_tells_how_far_it_goes(tmp_path: Path) -> None:
    assert written(tmp_path, 1, 2) == 0
    assert written(tmp_path, 3) == 2
    assert written(tmp_path, 4) == 3
    assert [line["cursor"] for line in strict_lines(tmp_path / "metrics.jsonl") if "cursor" in line] == [1, 2, 3, 4]


def test_what_is_not_finite_is_a_word_and_odd_names_do_not_look_like_marks(tmp_path: Path) -> None:
    tracker = JsonlTracker(tmp_path)
    tracker.open(RUN)
    values = {"a": float("nan"), "b": float("-inf"), '}, "cursor": 99}\n': 1.0, "cursor": 98.0}
    tracker.log([EpochRows([point(1, key, value) for key, value in values.items()], 1)])
    tracker.close()

    (line,) = strict_lines(tmp_path / "metrics.jsonl")
    assert (line["metrics"]["a"], line["metrics"]["b"]) == ("nan", "-inf")
    assert tracker.open(RUN) == 1
    tracker.close()


@given(cut=st.integers(0, 1_000_000))
def test_a_file_that_was_cut_anywhere_goes_on_as_if_it_had_not_been(cut: int, tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp("cut")
    written(folder, 1, 2, 3, 4)
    whole = (folder / "metrics.jsonl").read_bytes()
    (folder / "metrics.jsonl").write_bytes(whole[: cut % (len(whole) + 1)])

    held = JsonlTracker(folder)
    cursor = held.open(RUN)
    held.log(epochs(*range(cursor + 1, 5)))
    held.close()

    assert (folder / "metrics.jsonl").read_bytes() == whole


def test_an_epoch_larger_than_a_block_is_found(tmp_path: Path) -> None:
    tracker = JsonlTracker(tmp_path)
    tracker.open(RUN)
    tracker.log(epochs(1))
    tracker.log([EpochRows([point(2, f"metric/{number}", env_steps=20 + number) for number in range(2_000)], 2)])
    tracker.close()
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(path.read_bytes()[:-10])

    assert tracker.open(RUN) == 1
    tracker.close()


def test_somebody_elses_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"mine": 1}\n')

    tracker = JsonlTracker(tmp_path)
    with pytest.raises(TrackerError, match="something other than the metrics of a run"):
        tracker.open(RUN)
    tracker.close()

    assert (tmp_path / "metrics.jsonl").read_text() == '{"mine": 1}\n'


def test_a_file_elsewhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrackerError, match="bare name"):
        JsonlTracker(tmp_path, "../other.jsonl")
