from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import pytest

from hookloop.errors import TrackerError
from hookloop.trackers import EpochRows, TensorBoardTracker
from tests.unit.trackers.parts import RUN, epochs, point

pytest.importorskip("tensorboard")


def scalars(folder: Path) -> dict[str, list[tuple[int, float, float]]]:
    """Return what TensorBoard itself reads: step, wall time and value of each tag."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        found: Any = EventAccumulator(str(folder / "tensorboard")).Reload()
    return {
        tag: [(each.step, each.wall_time, each.value) for each in found.Scalars(tag)] for tag in found.Tags()["scalars"]
    }


def written(folder: Path, *numbers: int) -> int:
    tracker = TensorBoardTracker(folder)
    cursor = tracker.open(RUN)
    tracker.log(epochs(*numbers))
    tracker.close()
    return cursor


def test_tensorboard_reads_every_point_at_its_env_steps_and_time(tmp_path: Path) -> None:
    written(tmp_path, 1, 2)

    found = scalars(tmp_path)
    assert found["lr"] == [(10, 1_000_000.5, 1.0), (20, 1_000_001.0, 2.0)]
    assert found["loss"] == [
        (10, 1_000_000.5, 1.0),
        (10, 1_000_000.5, 1.5),
        (20, 1_000_001.0, 2.0),
        (20, 1_000_001.0, 2.5),
    ]


def test_a_run_without_environments_is_counted_in_steps_of_its_optimizer(tmp_path: Path) -> None:
    tracker = TensorBoardTracker(tmp_path)
    tracker.open(RUN)
    tracker.log([EpochRows((point(1, "lr", env_steps=0, optimizer_steps=23),), 1)])
    tracker.close()

    assert [step for step, _, _ in scalars(tmp_path)["lr"]] == [23]


def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    assert written(tmp_path, 1, 2) == 0
    assert written(tmp_path, 3) == 2

    assert [step for step, _, _ in scalars(tmp_path)["lr"]] == [10, 20, 30]
    assert len(list((tmp_path / "tensorboard").glob("events.*"))) == 1


@pytest.mark.parametrize("kept", [1, 30, 10_000])
def test_what_a_kill_left_beyond_the_mark_is_cut_off(tmp_path: Path, kept: int) -> None:
    written(tmp_path, 1, 2)
    mark = (tmp_path / "tensorboard" / "hookloop.json").read_bytes()
    events = next((tmp_path / "tensorboard").glob("events.*"))
    before = events.stat().st_size
    written(tmp_path, 3)
    (tmp_path / "tensorboard" / "hookloop.json").write_bytes(mark)  # killed before the mark
    events.write_bytes(events.read_bytes()[: before + kept])  # and in the middle of a record

    assert written(tmp_path, 3) == 2
    assert [step for step, _, _ in scalars(tmp_path)["lr"]] == [10, 20, 30]


def test_a_deleted_event_file_is_written_anew(tmp_path: Path) -> None:
    written(tmp_path, 1, 2)
    next((tmp_path / "tensorboard").glob("events.*")).unlink()

    assert written(tmp_path, 1, 2, 3) == 0
    assert [step for step, _, _ in scalars(tmp_path)["lr"]] == [10, 20, 30]


def test_a_damaged_mark_is_said(tmp_path: Path) -> None:
    written(tmp_path, 1)
    (tmp_path / "tensorboard" / "hookloop.json").write_text("{")

    with pytest.raises(TrackerError, match="is damaged"):
        TensorBoardTracker(tmp_path).open(RUN)


def test_what_is_not_finite_is_written(tmp_path: Path) -> None:
    tracker = TensorBoardTracker(tmp_path)
    tracker.open(RUN)
    tracker.log([EpochRows([point(1, "loss", math.inf), point(1, "lr", math.nan)], 1)])
    tracker.close()

    assert scalars(tmp_path)["loss"][0][2] == math.inf
    assert math.isnan(scalars(tmp_path)["lr"][0][2])
