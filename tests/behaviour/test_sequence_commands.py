"""Runs on sequences through the command, as a person has them: trained, resumed, looked at and asked."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from hookloop.checkpoints.store import CheckpointStore
from hookloop.cli.main import run
from hookloop.runs.folder import RunFolder

SMALL = (
    "model.layers=1", "model.heads=2", "model.width=16", "trainer.prompts_per_slot=2", "curriculum.slots=2",
    "curriculum.eval_frequency=5", "curriculum.eval_n_examples=4", "--display", "off",
)  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    small = [*SMALL, "trainer.values={}", "--runs-dir", str(folder)]
    assert run(["train", "arithmetic", "total_env_steps=800", *small, "--run", "whole"]) == 0
    assert run(["train", "arithmetic", "total_env_steps=400", *small, "--run", "halves"]) == 0
    assert (
        run(["train", "--resume", "halves", "total_env_steps=800", "--runs-dir", str(folder), "--display", "off"]) == 0
    )
    return folder


def say(capsys: pytest.CaptureFixture[str], runs: Path, *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = run([*arguments, "--runs-dir", str(runs)])
    out, err = capsys.readouterr()
    return code, out, " ".join(err.split())


def test_a_run_that_was_resumed_ends_with_the_same_weights(runs: Path) -> None:
    folders = [RunFolder(runs / name) for name in ("whole", "halves")]
    ends = [CheckpointStore(folder.checkpoints).latest() for folder in folders]
    weights = [(end.path / "model.safetensors").read_bytes() for end in ends]

    assert ends[0].name == ends[1].name
    assert weights[0] == weights[1]


def test_the_result_and_the_statistics_say_what_was_drawn_and_how_well(runs: Path) -> None:
    result = json.loads((runs / "whole" / "result.json").read_text())
    assert result["env_steps"] >= 800
    assert result["episodes"] == result["epochs"] * 2 * 2 * 4

    with sqlite3.connect(runs / "whole" / "stats.sqlite") as database:
        rows = database.execute("select scores, about from evaluations where name = 'eval/up_to_9'").fetchall()
    scores, about = (json.loads(text) for text in rows[0])
    assert scores["total_count"] == 4
    assert {"success_rate", "avg_reward", "pass@1", "pass@4"} <= set(scores)
    assert about["sample"]["prompt"].endswith("=")


def test_a_prompt_is_answered_and_the_seed_decides_how(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, once, _ = say(capsys, runs, "sample", "whole", "3+4=", "--seed", "1")
    _, again, _ = say(capsys, runs, "sample", "whole", "3+4=", "--seed", "1")

    assert code == 0
    assert once.startswith("3+4=")
    assert once.endswith("\n")
    assert once == again


def test_without_a_prompt_one_of_each_lesson_is_made_up(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = say(capsys, runs, "sample", "whole")

    assert code == 0
    assert len(out.splitlines()) == 3
    assert all("+" in line and "=" in line for line in out.splitlines())


def test_a_checkpoint_is_scored_lesson_by_lesson(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = say(capsys, runs, "eval", "whole", "--episodes", "5", "--json")

    scores = json.loads(out)["scores"]
    assert code == 0
    assert list(scores) == ["up_to_9", "up_to_29", "up_to_99"]
    assert {score["total_count"] for score in scores.values()} == {5}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("sample", "whole", "three"), "'t' of 'three' is not among the 13"),
        (("sample", "whole", "1+1=" * 9), "The prompt has 36 symbols"),
        (("predict", "whole", "x.npy"), "no answers to give"),
        (("eval", "whole", "--suite", "training"), "names a lesson, got None"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_words(
    runs: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    code, _, err = say(capsys, runs, *arguments)

    assert code == 2
    assert message in err


def test_workers_may_change_on_a_resume_and_lessons_may_not(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = say(capsys, runs, "train", "--resume", "halves", "workers=1", "--dry-run")
    assert code == 0
    assert "workers: 0 -> 1 (harmless)" in out

    code, _, err = say(capsys, runs, "train", "--resume", "halves", "model.width=32", "--dry-run")
    assert code == 2
    assert "(impossible)" in err
