"""The command, as a person uses it: in a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.command import hookloop as forked


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
    for command in ("train", "recipes", "config", "check-env", "hooks", "doctor", "watchdog"):
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

    trained = hookloop("train", "--dry-run", PYTHONPATH=path)
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


QUICK = ("total_env_steps=3000", "env.num_envs=8", "policy.hidden=[16, 16]")


def test_train_carries_out_a_recipe_and_ends_with_where_it_is_and_what_it_reached(tmp_path: Path) -> None:
    finished = hookloop("train", "cartpole", *QUICK, "--run", "mine", "--seed", "3", cwd=tmp_path)

    assert finished.returncode == 0, finished.stderr
    assert re.search(r"^completed$", finished.stdout, re.MULTILINE)
    assert re.search(r"reached  mean return \d+", finished.stdout)
    assert "where    runs/mine" in finished.stdout
    folder = tmp_path / "runs" / "mine"
    config, result = json.loads((folder / "config.json").read_text()), json.loads((folder / "result.json").read_text())
    assert (config["recipe"], config["seed"], config["settings"]["env"]["num_envs"]) == ("cartpole", 3, 8)
    assert (result["version"], result["outcome"], result["env_steps"] >= 3000) == (1, "completed", True)
    (checkpoint,) = (folder / "checkpoints").iterdir()
    assert checkpoint.name.endswith("-final")


def test_a_run_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    (tmp_path / "runs" / "mine" / "config.json").write_text("{}")

    finished = hookloop("train", "cartpole", *QUICK, "--run", "mine", cwd=tmp_path)

    assert finished.returncode == 2
    assert "There is a run 'mine' in runs already; go on with it (--resume mine)" in finished.stderr


def test_progress_as_json_is_one_object_per_line(tmp_path: Path) -> None:
    finished = hookloop("train", *QUICK[1:], "total_env_steps=40000", "--display", "json", cwd=tmp_path)

    rows = [json.loads(line) for line in finished.stdout.splitlines() if line.startswith("{")]
    assert finished.returncode == 0, finished.stderr
    assert rows
    assert all(row["step"] <= 60000 and row["sps"] > 0 for row in rows)


def test_a_dry_run_shows_settings_hooks_and_files_and_writes_nothing(tmp_path: Path) -> None:
    finished = hookloop("train", "cartpole", "--dry-run", "--run", "mine", cwd=tmp_path)

    assert finished.returncode == 0, finished.stderr
    assert '"id": "CartPole-v1"' in finished.stdout
    hooks = (
        "metrics/heartbeat, GoalHook, metrics/figures, metrics/stopwatch, metrics/gradients, "
        "metrics/machine, values, NanGuardHook, metrics/stats, checkpoint/save, metrics/trackers, "
        "metrics/progress"
    )
    assert f"hooks, in order: {hooks}" in finished.stdout
    assert "runs/mine/result.json" in finished.stdout
    assert list(tmp_path.iterdir()) == []


def test_recipes_and_their_settings_are_listed_with_origins() -> None:
    listed = hookloop("recipes")
    shown = hookloop("config", "cartpole", "env.num_envs=3")

    for name in ("cartpole", "acrobot", "pendulum", "lunarlander", "minigrid"):
        assert re.search(rf"^{name} +[A-Z].+hookloop", listed.stdout, re.MULTILINE)
    assert re.search(r"env.num_envs +3 +override env.num_envs=3", shown.stdout)
    assert re.search(r"env.id +CartPole-v1 +recipe cartpole", shown.stdout)
    assert re.search(r"env.mode +auto +default", shown.stdout)


def test_an_environment_is_checked(tmp_path: Path) -> None:
    finished = hookloop("check-env", "CartPole-v1", "--steps", "50")

    assert finished.returncode == 0
    assert re.search(r"CartPole-v1: \d+ steps/s with 4 environments; resumes bit-exact", finished.stdout)


def test_a_recipe_is_measured_with_numbers_of_workers() -> None:
    finished = hookloop("bench", "cartpole", "trainer.horizon=16", "--workers", "0", "--seconds", "0.05")

    assert finished.returncode == 0
    assert re.search(r"^0 +\d+ +1.00x$", finished.stdout, re.MULTILINE)
    assert re.search(
        r"^workers=auto takes \d: a rollout of 4 slots takes [\d.]+ ms with none", finished.stdout, re.MULTILINE
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("bench", "digits"), "plays no rollouts"),
        (("hoks",), 'Did you mean "hooks"'),
        (("train", "--sed", "3"), "Did you mean --seed"),
        (("train", "--seed", "many"), "many"),
        (("train", "cartpol"), "There is no recipe 'cartpol'. Did you mean 'cartpole'? Run 'hookloop recipes'"),
        (("train", "cartpole", "env.num_env=3"), "Did you mean 'env.num_envs'?"),
        (("train", "cartpole", "--run", "../x"), "it names a folder"),
        (("check-env", "CartPol-v1"), "Did you mean 'CartPole-v1'?"),
        (("hooks", "loging"), "There is no hook called 'loging'. Did you mean 'logging'?"),
    ],
)
def test_wrong_usage_exits_with_2_and_names_the_nearest_right_answer(arguments: tuple[str, ...], words: str) -> None:
    finished = hookloop(*arguments)

    assert finished.returncode == 2
    assert words in " ".join(finished.stderr.split())
    assert "Traceback" not in finished.stderr


def test_a_run_whose_numbers_are_not_finite_fails_with_words_and_writes_no_weights(tmp_path: Path) -> None:
    huge = ("trainer.optimizer.learning_rate=3e38", "trainer.values={}")

    finished = forked("train", "cartpole", *huge, "--run", "huge", "--display", "off", cwd=tmp_path)

    assert finished.returncode == 4
    assert "error: Not finite: " in finished.stderr
    assert "Lower the learning rate" in finished.stderr.replace("\n", " ")
    assert not list(tmp_path.rglob("*.safetensors"))


def test_a_run_resumed_from_before_its_settings_changed_ends_where_the_new_ones_say(tmp_path: Path) -> None:
    first = forked("train", "cartpole", "stop_at_return=20", "--run", "a", "--display", "off", cwd=tmp_path)
    [final] = (tmp_path / "runs" / "a" / "checkpoints").glob("step-*-final")
    changed = forked("train", "--resume", "a", "stop_at_return=40", "--display", "off", cwd=tmp_path)

    again = forked("train", "--resume", "a", "--checkpoint", final.name, "--display", "off", cwd=tmp_path)

    assert "the goal is 20" in first.stdout
    assert "the goal is 40" in changed.stdout
    assert again.stdout.splitlines()[0] == changed.stdout.splitlines()[1]
    assert "set aside: the run goes on from" in again.stderr


def test_a_finished_run_that_is_resumed_trains_nothing_more(tmp_path: Path) -> None:
    first = forked("train", "cartpole", "stop_at_return=20", "--run", "a", "--display", "off", cwd=tmp_path)

    again = forked("train", "--resume", "a", "--display", "off", cwd=tmp_path)

    steps = re.compile(r"after \d+ steps")
    assert steps.findall(again.stdout) == steps.findall(first.stdout)
