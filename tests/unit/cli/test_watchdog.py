"""The watchdog command: what a run is doing, by its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookloop.cli.main import run
from hookloop.monitoring import Heartbeat


def begun(runs: Path, outcome: str | None = None) -> Heartbeat:
    """Begin a run called one, which is this process."""
    (runs / "one").mkdir()
    (runs / "one" / "config.json").write_text("{}")
    heart = Heartbeat(runs / "one" / "heartbeat.json")
    heart.trace.reset("rollout\x1b[2J")
    heart.beat(outcome)
    return heart


def test_a_run_is_found_by_name_and_what_it_says_cannot_steer_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begun(tmp_path)

    assert run(["watchdog", "one", "--runs-dir", str(tmp_path), "--once"]) == 0
    assert capsys.readouterr().out.endswith("is in rollout?[2J\n")


def test_a_run_that_has_ended_says_how(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begun(tmp_path, "completed")

    assert run(["watchdog", str(tmp_path / "one")]) == 0
    assert capsys.readouterr().out.endswith("has ended: completed\n")


def test_a_run_without_a_heartbeat_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begun(tmp_path)
    (tmp_path / "one" / "heartbeat.json").unlink()

    assert run(["watchdog", "one", "--runs-dir", str(tmp_path), "--once"]) == 4
    assert "there is no heartbeat" in capsys.readouterr().out


def test_a_misspelt_run_or_policy_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begun(tmp_path)

    assert run(["watchdog", "onee", "--runs-dir", str(tmp_path)]) == 2
    assert "Did you mean 'one'?" in capsys.readouterr().err
    assert run(["watchdog", "one", "--runs-dir", str(tmp_path), "--policy", "shrug"]) == 2
