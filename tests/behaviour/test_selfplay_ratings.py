"""``hookloop ratings``: what a league has found stands in the statistics, also after a resume."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspiel", reason="OpenSpiel, the extra 'games', is not installed")

from hookloop.cli.main import run
from hookloop.stats import StatsReader

PER_EPOCH = 8 * 16
QUICK = (
    "game.num_envs=8", "trainer.values={}", "trainer.horizon=16", "trainer.num_minibatches=2", "network.hidden=[16]",
    "opponents.share=0.5", "opponents.every_epochs=1", "evaluation.games=4", "evaluation.schedule=every 2 epochs",
    "evaluation.promote_above=0.0", 'evaluation.opponents=["random", "greedy"]', "evaluation.opening_moves=3",
)  # fmt: skip


def train(folder: Path, name: str, *more: str, epochs: int) -> None:
    words = ["train", "tictactoe", f"total_env_steps={epochs * PER_EPOCH}", *QUICK, *more]
    assert run([*words, "--display", "off", "--run", name, "--runs-dir", str(folder)]) == 0


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    train(folder, "whole", epochs=6)
    return folder


def told(runs: Path, name: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert run(["ratings", name, "--runs-dir", str(runs), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_version_has_a_rating_within_its_interval(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = told(runs, "whole", capsys)

    assert [each["version"] for each in found["curve"]] == ["epoch-2", "epoch-4", "epoch-6"]
    assert [each["env_steps"] for each in found["curve"]] == [2 * PER_EPOCH, 4 * PER_EPOCH, 6 * PER_EPOCH]
    assert all(each["low"] < each["rating"] < each["high"] for each in found["curve"])
    assert {"random", "greedy", "epoch-2"} <= set(found["curve"][1]["scores"])
    assert {each["opponent"]: each["rating"] == 0 for each in found["opponents"]} == {"random": True, "greedy": False}


def test_promotions_tell_who_came_after_whom(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    promotions = told(runs, "whole", capsys)["promotions"]

    assert (promotions[0]["version"], promotions[0]["parent"]) == ("epoch-2", "random")
    assert [each["parent"] for each in promotions[1:]] == [each["version"] for each in promotions[:-1]]
    assert all({"rating", "score", "epoch"} <= set(each) for each in promotions)


def test_the_scores_are_metrics_and_stand_in_the_checkpoint(runs: Path) -> None:
    with StatsReader(runs / "whole" / "stats.sqlite") as reader:
        (run_id,) = [each["run_id"] for each in reader.runs()]
        assert len(reader.metric(run_id, "eval/random/score")) == 3
        assert (
            reader.checkpoints(run_id)[-1]["metrics"]["eval/rating"] == reader.metric(run_id, "eval/rating")[-1].value
        )


def test_a_table_shows_the_curve_the_opponents_and_the_champions(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run(["ratings", "whole", "--runs-dir", str(runs)]) == 0
    shown = capsys.readouterr().out

    assert shown.splitlines()[0].split()[:6] == ["version", "steps", "rating", "interval", "random", "greedy"]
    assert "random has rating 0" in shown
    assert "epoch-2 became champion with" in shown


def test_a_resumed_run_goes_on_with_its_ratings(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(runs, "halves", epochs=4)
    assert run(["train", "--resume", str(runs / "halves"), f"total_env_steps={6 * PER_EPOCH}", "--display", "off"]) == 0
    whole, halves = told(runs, "whole", capsys), told(runs, "halves", capsys)

    for found in (whole, halves):
        for each in found["curve"]:
            del each["seconds"]
    assert halves["curve"] == whole["curve"]
    assert halves["promotions"] == whole["promotions"]


def test_reading_ratings_takes_no_torch(runs: Path) -> None:
    program = (
        "import sys; from hookloop.cli.main import run; "
        f"assert run(['ratings', 'whole', '--runs-dir', {str(runs)!r}]) == 0; "
        "assert not {'torch', 'numpy', 'pyspiel'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)


def test_a_run_without_a_league_says_how_to_have_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(tmp_path, "plain", "evaluation.schedule=null", epochs=1)
    assert run(["ratings", "plain", "--runs-dir", str(tmp_path)]) == 0

    assert "no ratings in plain yet" in capsys.readouterr().out
