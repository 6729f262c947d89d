from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from hookloop.cli.hook_costs import costs_of
from hookloop.cli.main import run
from hookloop.core.costs import HookCost
from hookloop.core.state import HookFailures
from hookloop.runs.folder import RunConfig, RunFolder
from hookloop.stats import StatsReader, StatsStore


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run that was killed once, resumed with a change, and failed, with a hook that failed too."""
    folder = RunFolder(tmp_path / "one")
    change = {"path": "trainer.gamma", "before": 0.98, "after": 0.99, "effect": "changes training", "env_steps": 10}
    config = RunConfig("gone", 7, 1, {"trainer": {"gamma": 0.99}}, changes=[change])
    folder.write_config(config)
    with StatsStore(folder.stats_file, run_id=config.run_id) as store:
        store.begin_attempt(1, {"epochs": 0})
        for epoch, value in ((1, 5.0), (2, float("nan"))):
            clocks = {"epochs": epoch, "env_steps": 10 * epoch, "optimizer_steps": epoch, "seconds": 0.5 * epoch}
            store.log_metrics([{"hook": "", "event": "epoch_end", "clocks": clocks, "values": {"return/mean": value}}])
            store.log_epoch(clocks)
            if epoch == 1:
                store.begin_attempt(2, clocks, resumed_from=10)
        store.log_event("run", "exception", "OSError('disk')", clocks)
        store.log_hook_costs([HookCost("upload", "epoch_end", 2, 4000, 3000, 2)])
        store.log_hook_failures({"upload": HookFailures(3, "TimeoutError()", "epoch_end", is_disabled=True)})
        store.end_attempt("failed")
    return folder


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run(list(words)) == 0
    return capsys.readouterr().out


def test_a_run_that_failed_is_shown_with_the_reason_and_the_way_out(
    folder: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = said(capsys, "runs", "show", str(folder.path))

    assert "status    failed: OSError('disk') (run)\n" in shown
    assert "score     return/mean nan, best 5 at step 10\n" in shown
    assert "settings: there is no recipe 'gone' here to compare them with\n" in shown
    assert "settings that a resume changed\n  trainer.gamma 0.98 -> 0.99 from step 10 on\n" in shown
    assert "failures\n  upload 3 times, switched off, last at epoch_end: TimeoutError()\n" in shown
    assert shown.endswith(f"next\n  hookloop train --resume {folder.path}\n")
    attempts = [line.split() for line in shown.splitlines() if line.startswith("  ") and ", process" in line]
    assert [(words[0], "killed" in words, "failed" in words) for words in attempts] == [
        ("1", True, False),
        ("2", False, True),
    ]


def test_the_failures_of_hooks_stand_below_their_costs(folder: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    shown = said(capsys, "hooks", "--run", str(folder.path)).splitlines()

    assert shown[1].split()[:7] == ["upload", "epoch_end", "2", "4", "us", "2", "us"]
    assert shown[-1] == "failed  upload: 3 times, switched off, last at epoch_end: TimeoutError()"


def test_a_run_without_statistics_is_shown_as_far_as_it_goes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    RunFolder(tmp_path / "bare").write_config(RunConfig("cartpole", 0, 1, {}))

    assert "status    no statistics: The run 'bare' has no statistics yet" in said(
        capsys, "runs", "show", "bare", "--runs-dir", str(tmp_path)
    )
    assert run(["report", "bare", "--runs-dir", str(tmp_path)]) == 2


def test_a_damaged_run_does_not_hide_the_others_and_can_be_removed(
    folder: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = folder.path.parent / "damaged"
    damaged.mkdir()
    (damaged / "config.json").write_text("{")
    where = ("--runs-dir", str(folder.path.parent))

    listed = said(capsys, "runs", *where).splitlines()
    assert [line.split()[0] for line in listed] == ["run", "damaged", "one"]
    said(capsys, "runs", "rm", "damaged", "--yes", *where)
    assert not damaged.exists()


def test_the_share_of_a_hook_in_a_killed_attempt_is_of_the_time_until_its_newest_epoch(tmp_path: Path) -> None:
    now = ManualWallTime(1000.0)
    with StatsStore(tmp_path / "stats.sqlite", run_id="one", wall_time=now) as store:
        store.begin_attempt(1, {"epochs": 0})
        now.seconds = 1004.0
        store.log_epoch({"epochs": 1, "env_steps": 10, "optimizer_steps": 1, "seconds": 4.0})
        store.log_hook_costs([HookCost("upload", "epoch_end", 1, 1_000_000_000, 1_000_000_000, 1)])
        store.flush()
        store.begin_attempt(2, {"epochs": 0})  # the killed one's epoch is moved aside

    with StatsReader(tmp_path / "stats.sqlite") as reader:
        assert [cost.share for cost in costs_of(reader, "one")] == [0.25]


@dataclass
class ManualWallTime:
    seconds: float

    def __call__(self) -> float:
        return self.seconds
