"""The command, as a person uses it: in a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest


def hookloop(*arguments: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hookloop", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "100", **environment},
        check=False,
    )


def test_help_lists_every_command_with_a_line() -> None:
    finished = hookloop("--help")

    assert finished.returncode == 0
    for command in ("train", "hooks", "doctor"):
        assert re.search(rf"\b{command}\b +[A-Z].+\.", finished.stdout)


def test_hooks_lists_each_hook_with_events_schedule_and_failure_policy() -> None:
    finished = hookloop("hooks")

    assert finished.returncode == 0
    assert "logging  (hookloop)" in finished.stdout
    assert "on step_end; every 100 steps; on error: disable; ranks: main" in finished.stdout


def test_hooks_as_json_is_the_same_for_machines() -> None:
    cards = {card["name"]: card for card in json.loads(hookloop("hooks", "--json").stdout)}

    assert cards["time_limit"]["events"] == ["minibatch_end", "epoch_end"]
    assert cards["logging"]["on_error"] == "disable"
    assert cards["logging"]["problem"] == ""


def test_an_installed_plugin_is_listed_but_does_nothing_and_a_broken_one_says_why(tmp_path: Path) -> None:
    info = tmp_path / "acme_hooks-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-hooks\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[hookloop.hooks]\nacme = acme_hooks:AcmeHook\nbroken = acme_gone:Hook\n")
    (tmp_path / "acme_hooks.py").write_text(
        'print("imported")\nclass AcmeHook:\n    """Do what Acme does."""\n    def on_epoch_end(self, ctx): ...\n'
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])

    trained = hookloop("train", "--epochs", "1", PYTHONPATH=path)
    listed = hookloop("hooks", PYTHONPATH=path)

    assert "imported" not in trained.stdout  # being installed activates nothing
    assert "acme  (acme-hooks)" in listed.stdout
    assert "Do what Acme does." in listed.stdout
    assert "cannot be used" in listed.stdout
    assert "acme_gone" in listed.stdout


def test_doctor_reports_what_is_there_and_how_to_get_the_rest() -> None:
    finished = hookloop("doctor")
    findings = {finding["what"]: finding for finding in json.loads(hookloop("doctor", "--json").stdout)}

    assert finished.returncode == 0
    assert re.search(r"ok\s+torch\s+2\.", finished.stdout)
    assert findings["python"]["is_good"]
    missing = [finding for finding in findings.values() if finding["is_optional"] and not finding["is_good"]]
    assert all(re.fullmatch(r"pip install 'hookloop\[[\w-]+\]'", finding["advice"]) for finding in missing)


def test_train_runs_the_toy_workload_says_so_and_learns() -> None:
    finished = hookloop("train", "--epochs", "40", "--seed", "3")

    assert finished.returncode == 0
    assert finished.stdout.startswith("No recipe exists yet: this is the toy workload")
    assert "completed after 40 epochs" in finished.stdout
    slope = float(re.search(r"slope (-?[\d.]+)", finished.stdout)[1])
    assert slope == pytest.approx(3.0, abs=0.1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("hoks",), 'Did you mean "hooks"'),
        (("train", "--epoch", "3"), "Did you mean --epochs"),
        (("train", "--epochs", "many"), "many"),
        (("hooks", "loging"), "There is no hook called 'loging'. Did you mean 'logging'?"),
    ],
)
def test_wrong_usage_exits_with_2_and_names_the_nearest_right_answer(arguments: tuple[str, ...], words: str) -> None:
    finished = hookloop(*arguments)

    assert finished.returncode == 2
    assert words in " ".join(finished.stderr.split())
    assert "Traceback" not in finished.stderr
