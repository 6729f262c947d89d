"""``hookloop sync`` on runs that are only statistics."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hookloop.cli.main import run
from hookloop.hooks.trackers import tracker_lock
from hookloop.runs.folder import RunConfig, RunFolder
from hookloop.stats import StatsReader, StatsStore
from tests.unit.stats.logged import log_epoch, reading

RUN = "run-1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a run of four epochs that has ended."""
    folder = RunFolder(tmp_path / "first")
    folder.path.mkdir()
    folder.write_config(RunConfig("toy", 1, 1, {"trackers": ["tensorboard"]}, run_id=RUN))
    with StatsStore(folder.stats_file, run_id=RUN) as store:
        store.begin_attempt(1, reading(0), name="first")
        for epoch in range(1, 5):
            log_epoch(store, epoch)
        store.end_attempt("completed")
    return folder.path


def test_the_trackers_of_the_run_are_told_what_they_lack(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sync", "first", "--runs-dir", str(folder.parent)]) == 0
    first = capsys.readouterr().out
    assert run(["sync", str(folder)]) == 0
    second = capsys.readouterr().out

    assert first.splitlines() == ["jsonl        24 points, epochs 1-4", "tensorboard  24 points, epochs 1-4"]
    assert second.splitlines() == ["jsonl        nothing to send", "tensorboard  nothing to send"]
    with StatsReader(folder / "stats.sqlite") as reader:
        assert reader.cursor(RUN, "jsonl") == 4
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert sum(len(line["metrics"]) for line in lines) == 24


def test_a_tracker_that_the_run_did_not_have_can_be_added(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sync", str(folder), "--tracker", "jsonl"]) == 0

    assert capsys.readouterr().out == "jsonl  24 points, epochs 1-4\n"
    assert not (folder / "tensorboard").exists()


def test_a_lost_file_is_written_anew(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["sync", str(folder), "--tracker", "jsonl"])
    before = (folder / "metrics.jsonl").read_bytes()
    (folder / "metrics.jsonl").unlink()
    run(["sync", str(folder), "--tracker", "jsonl"])

    assert (folder / "metrics.jsonl").read_bytes() == before


def test_a_misspelt_tracker_is_told_the_nearest(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sync", str(folder), "--tracker", "jsonll"]) == 2
    assert "Did you mean 'jsonl'?" in capsys.readouterr().err


def test_a_missing_extra_exits_with_3(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("hookloop.trackers.tensorboard.find_spec", lambda name: None)

    assert run(["sync", str(folder)]) == 3
    assert "pip install 'hookloop[tensorboard]'" in capsys.readouterr().err


def test_what_cannot_be_sent_is_said_and_the_others_are_sent(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("hookloop.cli.sync._FIRST_PAUSE_SECONDS", 0.001)
    (folder / "metrics.jsonl").write_text("mine")

    assert run(["sync", str(folder)]) == 4
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("jsonl        nothing to send; then it failed: TrackerError: ")
    assert lines[1] == "tensorboard  24 points, epochs 1-4"


def test_a_second_sender_is_told_of_the_first_and_sends_to_the_others(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with tracker_lock(folder, "jsonl"):
        assert run(["sync", str(folder)]) == 75

    out, err = capsys.readouterr()
    assert out.splitlines() == ["jsonl        another process sends to it", "tensorboard  24 points, epochs 1-4"]
    assert "is in use by process" in err


def test_a_run_without_statistics_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "first").mkdir()
    RunFolder(tmp_path / "first").write_config(RunConfig("toy", 1, 1, {}))

    assert run(["sync", str(tmp_path / "first")]) == 2
    assert "has no statistics yet" in capsys.readouterr().err


def test_sending_needs_no_torch(folder: Path) -> None:
    program = f"from hookloop.cli.main import run; assert run(['sync', {str(folder)!r}]) == 0"
    look = "import sys; assert 'torch' not in sys.modules and 'gymnasium' not in sys.modules"

    done = subprocess.run([sys.executable, "-c", f"{program}\n{look}"], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
