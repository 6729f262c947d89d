"""Supervised runs through the command, as a person has them: trained, killed, resumed, looked at and asked."""

from __future__ import annotations

import itertools
import json
import logging
import os
import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hookloop.checkpoints.store import CheckpointStore
from hookloop.cli.changes import changes_between
from hookloop.cli.main import run
from hookloop.recipes import find_recipe
from hookloop.runs.folder import RunFolder
from hookloop.runs.panels import measured, overview, usual_clock
from tests.faults.processes import fork
from tests.terminal import Session
from tests.waiting import wait_until

SMALL_DIGITS = (
    "model.channels=[8,16]", "model.hidden=32", "training.learning_rate=0.01", "training.epochs=3", "--display", "off",
)  # fmt: skip
SMALL_CHARLM = (
    "model.layers=1", "model.heads=2", "model.width=16", "data.block_size=16", "data.batches_per_epoch=5",
    "data.val_windows=20", "training.epochs=2", "training.warmup_steps=2", "--display", "off",
)  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    assert run(["train", "digits", *SMALL_DIGITS, "--run", "digits", "--runs-dir", str(folder)]) == 0
    assert run(["train", "charlm", *SMALL_CHARLM, "--run", "charlm", "--runs-dir", str(folder)]) == 0
    quick = ("total_env_steps=500", "env.num_envs=4", "--display", "off")
    assert run(["train", "cartpole", *quick, "--run", "cartpole", "--runs-dir", str(folder)]) == 0
    return folder


def say(capsys: pytest.CaptureFixture[str], runs: Path, *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = run([*arguments, "--runs-dir", str(runs)])
    out, err = capsys.readouterr()
    return code, out, " ".join(err.split())


def images(count: int = 6) -> tuple[np.ndarray, list[int]]:
    from sklearn.datasets import load_digits

    found = load_digits()
    return found.images[:count], found.target[:count].tolist()


def test_a_text_is_continued_and_the_seed_decides_how(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("sample", "charlm", "def f(", "--length", "40")

    code, first, _ = say(capsys, runs, *words, "--seed", "1")
    again = say(capsys, runs, *words, "--seed", "1")[1]
    other = say(capsys, runs, *words, "--seed", "2")[1]

    assert code == 0
    assert first.startswith("def f(")
    assert len(first) == len("def f(") + 40 + 1
    assert again == first != other


def test_without_heat_and_from_one_symbol_only_the_likeliest_is_drawn(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cold = say(capsys, runs, "sample", "charlm", "--length", "20", "--temperature", "0", "--seed", "1")[1]
    single = say(capsys, runs, "sample", "charlm", "--length", "20", "--top-k", "1", "--seed", "2")[1]

    assert cold == single
    assert len(cold) == 21


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("sample", "charlm", "π = 3"), "and not 'π'; write the prompt without"),
        (("sample", "charlm", "--length", "0"), "--length must be at least 1 symbol, got 0"),
        (("sample", "charlm", "--temperature", "-1"), "--temperature must be 0 or more, got -1"),
        (("sample", "charlm", "--top-k", "0"), "--top-k must be at least 1 symbol, got 0"),
        (("sample", "digits"), "was trained on digits, which 'hookloop sample' is not for; 'hookloop predict digits'"),
        (("sample", "cartpole"), "is one of reinforcement learning, and has a policy to play with"),
        (("sample", "cartpole"), "'hookloop eval cartpole' scores it"),
        (("predict", "charlm", "x.npy"), "'hookloop sample charlm' is"),
        (("predict", "digits", "x.npy"), "There is no file 'x.npy'"),
        (("predict", "digits", "x.txt"), "ends in .npy or .csv, got 'x.txt'"),
        (("sample", "charlm", "--checkpoint", "epoch9"), "There is no checkpoint of epoch 9"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_sentence(
    runs: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], why: str
) -> None:
    code, out, err = say(capsys, runs, *words)

    assert (code, out) == (2, "")
    assert why in err


def test_images_are_recognised_from_every_form_of_file(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pixels, labels = images()
    np.save(tmp_path / "images.npy", pixels)
    np.save(tmp_path / "rows.npy", pixels.reshape(-1, 64).astype(np.uint8))
    np.savetxt(tmp_path / "rows.csv", pixels.reshape(-1, 64), delimiter=",", fmt="%g")

    found = [
        json.loads(say(capsys, runs, "predict", "digits", str(tmp_path / name), "--json")[1])
        for name in ("images.npy", "rows.npy", "rows.csv")
    ]
    code, table, _ = say(capsys, runs, "predict", "digits", str(tmp_path / "images.npy"), "--checkpoint", "best")

    assert found[0] == found[1] == found[2]
    answers = found[0]["answers"]
    assert [each["image"] for each in answers] == list(range(6))
    assert sum(each["answer"] == label for each, label in zip(answers, labels, strict=True)) >= 4
    assert all(sum(each["probabilities"]) == pytest.approx(1) for each in answers)
    assert all(each["probability"] == max(each["probabilities"]) for each in answers)
    assert code == 0
    assert table.splitlines()[0].split() == ["image", "answer", "probability", "next"]
    assert [line.split()[1] for line in table.splitlines()[1:]] == [str(each["answer"]) for each in answers]


def test_a_file_that_holds_no_such_images_is_refused_with_what_is_expected(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pixels = images()[0]
    np.save(tmp_path / "cut.npy", pixels[:, :7])
    np.save(tmp_path / "dark.npy", pixels - 1)
    np.save(tmp_path / "nan.npy", np.full((1, 64), np.nan))
    np.save(tmp_path / "none.npy", pixels[:0])
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    np.savez(tmp_path / "zip.npz", pixels)
    (tmp_path / "zip.npz").rename(tmp_path / "zip.npy")
    (tmp_path / "text.npy").write_text("no array")
    (tmp_path / "names.csv").write_text(",".join(f"p{k}" for k in range(64)) + "\n")
    (tmp_path / "short.csv").write_text("1,2,3\n")
    expected = {
        "cut.npy": "an array of the shape [n, 64] or [n, 8, 8], got [6, 7, 8]",
        "dark.npy": "lie between 0 (dark) and 16; those of image 0 (from 0) lie between -1 and",
        "nan.npy": "lie between nan and nan",
        "none.npy": "holds no images",
        "objects.npy": "is no array that numpy.save wrote",
        "zip.npy": "is no array of numbers",
        "text.npy": "is no array that numpy.save wrote",
        "names.csv": "line 1: could not convert string to float: 'p0'; a line is 64 numbers",
        "short.csv": "line 1: an image is a line of 64 numbers, got 3",
    }

    for name, why in expected.items():
        code, out, err = say(capsys, runs, "predict", "digits", str(tmp_path / name))
        assert (code, out) == (2, "")
        assert why in err, name


def test_images_that_are_all_dark_are_answered_with_a_note(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "shares.npy", images()[0] / 16)

    code, _, err = say(capsys, runs, "predict", "digits", str(tmp_path / "shares.npy"))

    assert code == 0
    assert "here they go from 0 to 16" in err


def test_a_run_without_environments_is_listed_and_shown_by_what_it_has(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = {each["run"]: each for each in json.loads(say(capsys, runs, "runs", "--json")[1])}
    shown = say(capsys, runs, "runs", "show", "digits")[1]
    table = say(capsys, runs, "metrics", "digits", "val_loss")[1].splitlines()

    assert (listed["digits"]["steps"], listed["digits"]["metric"]) == (69, "val_accuracy")
    assert listed["digits"]["score"] > 0.5
    assert listed["charlm"]["metric"] == "val_loss"
    assert listed["cartpole"]["metric"] == "return/mean"
    assert re.search(r"trained   3 epochs, 69 optimizer steps in [\d.]+ m?s\n", shown)
    assert re.search(r"score     val_accuracy 0\.\d+, best 0\.\d+ in epoch \d\n", shown)
    assert "episodes" not in shown
    assert table[1].split()[4] == "69"


def test_the_plot_of_a_supervised_run_has_six_panels_over_epochs(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = RunFolder(runs / "digits")
    assert usual_clock([folder]) == "epoch"
    assert usual_clock([RunFolder(runs / "cartpole")]) == "env_steps"

    panels = overview([measured(folder, "epoch")], "epoch", 1)
    code, said, _ = say(capsys, runs, "plot", "digits", "--to", str(tmp_path / "digits.png"))

    assert [(panel.title, panel.names) for panel in panels] == [
        ("loss", ["loss", "val_loss"]),
        ("accuracy", ["val_accuracy"]),
        ("learning rate", ["learning_rate"]),
        ("gradient norm", ["grad_norm"]),
        ("time per epoch", ["time per epoch"]),
        ("throughput", ["throughput"]),
    ]
    assert all(panel.curves[0].x == [1.0, 2.0, 3.0] for panel in panels)
    assert all(speed > 0 for speed in panels[-1].curves[0].y)
    assert code == 0
    assert "6 panels of digits" in said


def test_a_report_of_a_supervised_run_does_not_speak_of_environments(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert say(capsys, runs, "report", "digits", "--to", str(tmp_path / "digits.html"))[0] == 0

    page = (tmp_path / "digits.html").read_text()
    assert "optimizer steps" in page
    assert "environment steps" not in page


@pytest.mark.parametrize(
    ("change", "schedule", "effect"),
    [
        ({"training": {"epochs": 30}}, "constant", "harmless"),
        ({"training": {"epochs": 30}}, "cosine", "changes training"),
        ({"training": {"max_steps": 30}}, "constant", "harmless"),
        ({"training": {"max_steps": 30}}, "wsd", "changes training"),
        ({"training": {"learning_rate": 1.0}}, "constant", "changes training"),
        ({"training": {"batch_size": 7}}, "constant", "changes training"),
        ({"training": {"optimizer": "sgd"}}, "constant", "impossible"),
        ({"training": {"validate_every_epochs": 2}}, "cosine", "harmless"),
        ({"training": {"save_every_steps": 2}}, "cosine", "harmless"),
        ({"patience": 2}, "cosine", "harmless"),
        ({"model": {"hidden": 3}}, "constant", "impossible"),
        ({"data": {"val_share": 0.5}}, "constant", "impossible"),
    ],
)
def test_a_change_on_resume_is_harmless_changes_training_or_is_impossible(
    change: dict[str, object], schedule: str, effect: str
) -> None:
    before = find_recipe("digits").model_dump(mode="json")
    before["training"]["lr_schedule"] = schedule
    after = {**before}
    for name, value in change.items():
        after[name] = {**before[name], **value} if isinstance(value, dict) else value

    assert [each.effect for each in changes_between(before, after)] == [effect]


def test_a_constant_learning_rate_lets_a_run_be_longer_and_it_ends_as_if_it_had_been_meant_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = (*SMALL_DIGITS[:3], "training.lr_schedule=constant", "--display", "off")
    for name, epochs in (("long", 3), ("short", 2)):
        words = ("train", "digits", *plain, f"training.epochs={epochs}", "--run", name)
        assert say(capsys, tmp_path, *words)[0] == 0

    code, said, _ = say(capsys, tmp_path, "train", "--resume", "short", "training.epochs=3", "--display", "off")

    assert code == 0
    assert "changed  training.epochs: 2 -> 3 (harmless)" in said
    assert weights(tmp_path, "short") == weights(tmp_path, "long")


def test_a_folder_for_checkpoints_of_its_own_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = say(capsys, tmp_path, "train", "digits", "training.checkpoint_dir=x", "--run", "one")

    assert code == 2
    assert "a run saves in its own folder" in err


def weights(runs: Path, name: str) -> bytes:
    """Return the weights that a run ended with."""
    final = [each for each in CheckpointStore(runs / name / "checkpoints").sound() if each.manifest.kind == "final"]
    return (final[-1].path / "model.safetensors").read_bytes()


def rows(runs: Path, name: str) -> list[dict[str, float]]:
    return json.loads((runs / name / "result.json").read_text())["rows"]


def killed_at_batch(number: int, store: CheckpointStore, words: list[str]) -> int:
    """Run the command, kill it at a batch when it has saved since its last epoch, and return its exit code."""
    from hookloop.supervised.accumulator import GradientAccumulator

    accumulate, batches = GradientAccumulator.accumulate, itertools.count(1)

    def accumulate_and_die(self: GradientAccumulator, *given: Any, **options: Any) -> bool:
        if next(batches) == number:
            wait_until(lambda: any(each.manifest.epochs >= 1 for each in store.sound()))
            os.kill(os.getpid(), signal.SIGKILL)
        return accumulate(self, *given, **options)

    GradientAccumulator.accumulate = accumulate_and_die  # in a forked child
    return run(words)


def test_a_run_that_is_killed_within_an_epoch_ends_with_the_weights_of_one_that_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    settings = (
        *SMALL_DIGITS[:3], "training.epochs=2", "training.batch_size=16", "training.save_every_steps=7",
        "training.gradient_accumulation_steps=2", "checkpoints.schedule=never", "checkpoints.keep_last=50",
        "--display", "off",
    )  # fmt: skip
    assert say(capsys, tmp_path, "train", "digits", *settings, "--run", "whole")[0] == 0
    store, batches = CheckpointStore(tmp_path / "killed" / "checkpoints"), -(-1438 // 16)
    words = ["train", "digits", *settings, "--run", "killed", "--runs-dir", str(tmp_path)]
    child = fork(lambda: killed_at_batch(batches + 10, store, words), tmp_path / "output.txt")
    assert child.code() == -signal.SIGKILL, child.output
    latest = store.latest().manifest
    assert latest.step % batches != 0  # within an epoch

    with caplog.at_level(logging.INFO):
        code, _, _ = say(capsys, tmp_path, "train", "--resume", "killed", "--display", "off")

    assert code == 0
    assert f"(minibatches={latest.step}, epoch {latest.epochs})" in caplog.text
    assert weights(tmp_path, "killed") == weights(tmp_path, "whole")
    assert rows(tmp_path, "killed") == rows(tmp_path, "whole")


def test_a_terminal_shows_a_supervised_run_in_epochs(tmp_path: Path) -> None:
    words = ("train", "digits", *SMALL_DIGITS[:3], "training.epochs=500", "--run", "mine", "--display", "live")
    session = Session(*words, width=120, height=30, cwd=tmp_path)
    try:
        session.wait_until(lambda: "val_loss" in session.screen.text and session.screen.text.rstrip().endswith("╯"))
        text = session.screen.text
        assert session.screen.lines[0].startswith("╭─ mine · digits ──")
        assert re.search(r"\d+ of 500 epochs", text)
        assert "epochs/s" in text
        assert "steps" not in text
        assert "evaluation   " not in text  # the curves tell it
        for name in ("grad_norm", "learning_rate", "val_accuracy", "loss"):
            assert name in text
        session.press(b"\x03")
        assert session.end() == 130
        assert "interrupted (received SIGINT)" in session.screen.text
    finally:
        session.close()
