"""``hookloop eval`` and ``hookloop replay`` on the runs of ``hookloop train``."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hookloop.cli.main import run
from hookloop.replays import read_replay
from hookloop.runs.folder import RunFolder
from hookloop.stats import StatsReader

QUICK = ("total_env_steps=2000", "env.num_envs=8", "trainer.num_minibatches=2", "--display", "off")
SUITE = 'evaluation.suite={"heavy": {"kwargs": {"sutton_barto_reward": true}}}'


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    settings = (*QUICK, SUITE, "evaluation.episodes=5")
    assert run(["train", "cartpole", *settings, "--run", "first", "--runs-dir", str(folder)]) == 0
    return folder


@pytest.fixture
def runs(trained: Path, tmp_path: Path) -> Path:
    shutil.copytree(trained, tmp_path / "runs")
    return tmp_path / "runs"


def say(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = run(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


def evaluated(capsys: pytest.CaptureFixture[str], runs: Path, *options: str) -> dict[str, Any]:
    code, out, err = say(capsys, "eval", "first", "--runs-dir", str(runs), "--json", *options)
    assert (code, err) == (0, "")
    return json.loads(out)


def test_a_checkpoint_is_scored_and_the_score_is_kept(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = say(capsys, "eval", "first", "--runs-dir", str(runs), "--episodes", "7")

    assert code == 0
    head, columns, row = out.splitlines()
    assert "greedy, 7 episodes, seeds from" in head
    assert columns.split()[:4] == ["simulation", "episodes", "mean", "median"]
    assert row.split()[:2] == ["training", "7"]
    config = RunFolder(runs / "first").read_config()
    with StatsReader(runs / "first" / "stats.sqlite") as reader:
        kept = reader.evaluations(config.run_id)
    assert [each["name"].partition("@")[0] for each in kept] == ["eval"]
    assert kept[0]["episodes"] == 7
    assert kept[0]["checkpoint"].startswith(config.run_id)


def test_the_same_checkpoint_has_the_same_score_and_another_seed_another(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    once, again = evaluated(capsys, runs), evaluated(capsys, runs)
    other, sampled = evaluated(capsys, runs, "--seed", "1"), evaluated(capsys, runs, "--sampled")

    returns = [each["scores"]["training"]["returns"] for each in (once, again, other, sampled)]
    assert len(returns[0]) == 5
    assert returns[0] == returns[1]
    assert returns[2] != returns[0] != returns[3]
    assert sampled["greedy"] is False


def test_a_suite_is_named_or_all_of_it(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert list(evaluated(capsys, runs, "--suite", "heavy")["scores"]) == ["heavy"]
    assert list(evaluated(capsys, runs, "--suite", "all")["scores"]) == ["training", "heavy"]
    code, _, err = say(capsys, "eval", "first", "--runs-dir", str(runs), "--suite", "haevy")
    assert code == 2
    assert "There is no suite 'haevy' in the settings of the run. Did you mean 'heavy'?" in err


def test_checkpoints_are_chosen_as_everywhere(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "final" in evaluated(capsys, runs, "--checkpoint", "best")["checkpoint"]
    code, _, err = say(capsys, "eval", "first", "--runs-dir", str(runs), "--checkpoint", "77")
    assert code == 2
    assert "There is no checkpoint at step 77" in err
    assert say(capsys, "eval", "first", "--runs-dir", str(runs), "--episodes", "0")[0] == 2


def test_episodes_are_recorded_and_shown(runs: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    result = evaluated(capsys, runs, "--record", "2")
    best = max(result["scores"]["training"]["returns"][:2])

    code, out, _ = say(capsys, "replay", "first", "--runs-dir", str(runs))
    lines = out.splitlines()
    assert code == 0
    assert f"return {best:g}" in lines[0]
    assert lines[-1].startswith(f"step={best:g} action=")
    assert len(say(capsys, "replay", "first", "--runs-dir", str(runs), "--list")[1].splitlines()) == 2
    page = tmp_path / "episode.html"
    assert say(capsys, "replay", "first", "--episode", "worst", "--to", str(page), "--runs-dir", str(runs))[0] == 0
    assert "<!doctype html>" in page.read_text(encoding="utf-8")
    with StatsReader(runs / "first" / "stats.sqlite") as reader:
        kept = reader.replays(RunFolder(runs / "first").read_config().run_id)
    assert {each["uri"] for each in kept} == set(result["replays"].values())
    file = next((runs / "first" / "replays").iterdir())
    assert read_replay(file).steps in {each["length"] for each in kept}


@pytest.mark.parametrize(("words", "message"), [
    (["--episode", "bset"], "Did you mean 'best'"),
    (["--to", "episode.gif"], "ends with .html"),
    (["--episode", "99"], "counted from 1"),
])  # fmt: skip
def test_what_cannot_be_shown_is_said(
    runs: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluated(capsys, runs, "--record", "1")

    code, _, err = say(capsys, "replay", "first", "--runs-dir", str(runs), *words)

    assert code == 2
    assert message in err


def test_a_run_without_replays_and_a_damaged_one_are_said(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = say(capsys, "replay", "first", "--runs-dir", str(runs))
    assert code == 2
    assert "There are no replays in" in err
    evaluated(capsys, runs, "--record", "1")
    file = next((runs / "first" / "replays").iterdir())
    file.write_bytes(file.read_bytes()[:-3])
    code, _, err = say(capsys, "replay", "first", "--runs-dir", str(runs), "--episode", "1")
    assert code == 2
    assert "it is cut off" in err


def test_in_a_terminal_keys_lead_through_the_episode(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evaluated(capsys, runs, "--record", "1")
    leader, follower = pty.openpty()
    words = [sys.executable, "-m", "hookloop", "replay", "first", "--runs-dir", str(runs)]
    process = subprocess.Popen(words, stdin=follower, stdout=follower, stderr=follower)
    os.close(follower)
    try:
        wait_for(leader, "step 1 of")
        os.write(leader, b"\x1b[C")
        wait_for(leader, "step 2 of")
        os.write(leader, b"n")
        wait_for(leader, "step 3 of")
        os.write(leader, b"\x1b[D")
        wait_for(leader, "step 2 of")
        os.write(leader, b"q")
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        os.close(leader)


def wait_for(terminal: int, text: str, seconds: float = 60.0) -> None:
    shown, deadline = "", time.monotonic() + seconds
    while text not in shown:
        assert time.monotonic() < deadline, f"{text!r} was not shown, but: {shown!r}"
        if select.select([terminal], [], [], 0.2)[0]:
            shown += os.read(terminal, 65536).decode(errors="replace")
