"""Every word for a checkpoint finds the one it stands for, and says what there is when there is none."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import pytest

from hookloop.checkpoints import CheckpointManager, Retention
from hookloop.checkpoints.publishing import UriSink
from hookloop.errors import DamagedCheckpointError, LocationError, NoCheckpointError
from tests.saving import PARTS, about, is_same, manager_in, names_in, save, state_at


@pytest.fixture
def manager(tmp_path: Path) -> CheckpointManager:
    """Four checkpoints: epochs 1, 2, 5, and 5 once more as the end; the second has the best return."""
    folder = tmp_path / "a run" / "checkpoints"
    manager = manager_in(folder, retention=Retention(keep_last=10, metric="return/mean"))
    with manager:
        for step, score in ((1, 0.5), (2, 2.0), (5, 1.0)):
            save(manager, step, metrics={"return/mean": score})
        manager.save(state_at(50), about(5, kind="final"), parts=PARTS)
    return manager


@pytest.mark.parametrize(
    ("selector", "step"),
    [
        ("latest", 50),
        ("final", 50),
        ("best", 2),
        ("1", 1),
        ("5", 50),
        ("step-000000000005", 5),
        ("step-000000000005-final", 50),
        ("epoch2", 2),
        ("epoch_2", 2),
        ("epoch-0002", 2),
        ("checkpoint_epoch0001.pt", 1),
        ("checkpoint-epoch1", 1),
    ],
)
def test_a_word_finds_its_checkpoint(manager: CheckpointManager, selector: str, step: int) -> None:
    _, state = manager.load(selector)

    assert is_same(state_at(step), state)


def test_a_path_a_uri_and_a_foreign_file_name_find_their_checkpoint(manager: CheckpointManager) -> None:
    checkpoint, _ = manager.load("2")
    elsewhere = manager_in(manager.folder.parent / "other")

    for selector in (
        checkpoint.path,
        str(checkpoint.path),
        checkpoint.uri,
        f"file://{checkpoint.path}",
        manager.folder / "checkpoint_epoch0002.pt",
        os.path.relpath(checkpoint.path),
    ):
        assert is_same(state_at(2), elsewhere.load(selector)[1]), selector


def test_a_uri_finds_what_was_published_there(manager: CheckpointManager, tmp_path: Path) -> None:
    checkpoint, _ = manager.load("2")

    for place in (f"memory://{uuid.uuid4().hex}", f"file://{tmp_path}/a place"):
        uri = UriSink(place).publish(checkpoint)
        found, state = manager_in(tmp_path / "other").load(uri)

        assert is_same(state_at(2), state)
        assert found.id == checkpoint.id


def test_what_was_fetched_is_gone_again(
    manager: CheckpointManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    uri = UriSink(f"memory://{uuid.uuid4().hex}").publish(manager.load("2")[0])

    manager.load(uri)

    assert names_in(scratch) == []


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("7", r"no checkpoint at step 7 in .* There are step-000000000001 \(epoch 1\)"),
        ("step-000000000007", "no checkpoint named step-000000000007"),
        ("epoch7", "no checkpoint of epoch 7"),
        ("newest", "'newest' is no checkpoint. Say latest, best, final"),
        ("", "is no checkpoint"),
        ("/nowhere/at/all", "is no checkpoint"),
        ("a\0b", "is no checkpoint"),
        ("9" * 5000, "no checkpoint"),
        ("epoch" + "9" * 5000, "no checkpoint"),
        ("\u0663", "no checkpoint"),
    ],
    ids=lambda text: ascii(text)[:30],
)
def test_a_word_that_finds_nothing_says_what_there_is(manager: CheckpointManager, selector: str, message: str) -> None:
    with pytest.raises(NoCheckpointError, match=message):
        manager.load(selector)


def test_without_a_score_nothing_is_best(tmp_path: Path) -> None:
    with manager_in(tmp_path) as manager:
        save(manager, 1)

        with pytest.raises(NoCheckpointError, match="has the metric 'return/mean'"):
            manager.load("best")
        with pytest.raises(NoCheckpointError, match="that is final"):
            manager.load("final")


def test_in_an_empty_folder_nothing_is_latest(tmp_path: Path) -> None:
    with pytest.raises(NoCheckpointError, match=r"There is no checkpoint in .* yet"):
        manager_in(tmp_path).load("latest")
    with pytest.raises(NoCheckpointError, match="There is none at all"):
        manager_in(tmp_path).load("epoch3")


def test_a_place_without_a_checkpoint_is_refused(manager: CheckpointManager) -> None:
    with pytest.raises(LocationError, match="no whole copy"):
        manager.load(f"memory://{uuid.uuid4().hex}/nothing")


@pytest.mark.parametrize("selector", ["2", "epoch2", "best", "step-000000000002"])
def test_a_damaged_one_that_was_asked_for_is_not_replaced_by_another(manager: CheckpointManager, selector: str) -> None:
    (manager.folder / "step-000000000002" / "state.json").write_bytes(b"")

    with pytest.raises(DamagedCheckpointError, match="step-000000000002"):
        manager.load(selector)
    assert "step-000000000002" in names_in(manager.folder)
