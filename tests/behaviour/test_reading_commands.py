"""The commands that read what runs have measured."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from hookloop.cli.main import run

QUICK = ("total_env_steps=2000", "env.num_envs=8", "trainer.num_minibatches=2", "--display", "off")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for name in ("first", "second"):
        assert run(["train", "cartpole", *QUICK, "--run", name, "--runs-dir", str(folder)]) == 0
    return folder


def say(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = run(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


def test_runs_are_listed_with_how_they_stand(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = say(capsys, "runs", "--runs-dir", str(runs))

    assert code == 0
    assert [line.split()[:4] for line in out.splitlines()[1:]] == [
        ["first", "cartpole", "0", "completed"],
        ["second", "cartpole", "0", "completed"],
    ]
    listed = json.loads(say(capsys, "runs", "--runs-dir", str(runs), "--json")[1])
    assert listed[0]["steps"] >= 2000


def test_no_runs_yet_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert say(capsys, "runs", "--runs-dir", str(tmp_path))[:2] == (0, f"no run in {tmp_path} yet\n")


def test_metrics_are_shown_with_their_curves_and_as_csv_and_json(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = say(capsys, "metrics", "first", "return/mean", "--runs-dir", str(runs))[1].splitlines()
    assert table[0].split() == ["metric", "last", "min", "max", "steps", "curve"]
    assert "█" in table[1]

    rows = list(csv.DictReader(io.StringIO(say(capsys, "metrics", "first", "--csv", "--runs-dir", str(runs))[1])))
    points = json.loads(say(capsys, "metrics", "first", "return/mean", "--json", "--runs-dir", str(runs))[1])
    means = [float(row["value"]) for row in rows if row["key"] == "return/mean"]
    assert means == [point["value"] for point in points["return/mean"]]


def test_an_unknown_metric_is_refused_with_the_nearest(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = say(capsys, "metrics", "first", "return/meen", "--runs-dir", str(runs))

    assert code == 2
    assert "There is no metric 'return/meen' in the run 'first'. Did you mean 'return/mean'?" in err


def test_a_query_reads_and_cannot_write(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = say(capsys, "query", "first", "SELECT count(*) AS n FROM epochs", "--runs-dir", str(runs))
    assert (code, out.split()[0]) == (0, "n")

    code, _, err = say(capsys, "query", "first", "DELETE FROM points", "--runs-dir", str(runs))
    assert code == 2
    assert "only read" in err
