"""The folder of checkpoints: what is in it, what goes, what is set aside, and what is never believed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from hookloop.checkpoints import CheckpointStore
from hookloop.checkpoints.folder import write_folder
from hookloop.checkpoints.manifest import Manifest
from hookloop.checkpoints.store import Unreadable
from hookloop.errors import CheckpointError, CheckpointWriteError, DamagedCheckpointError, NoCheckpointError
from hookloop.storage.disk import LocalDisk
from tests.saving import FailingDisk, is_same, names_in, saved, state_at

ONE, TWO, THREE = (f"step-{step:012d}" for step in (1, 2, 3))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return saved(tmp_path / "checkpoints", 1, 2, 3)


@pytest.fixture
def store(folder: Path) -> CheckpointStore:
    return CheckpointStore(folder)


def damage(folder: Path, name: str) -> None:
    (folder / name / "state.json").write_bytes(b"{}")


# Reading


def test_names_are_in_the_order_of_the_steps_and_nothing_else_is_one(folder: Path, store: CheckpointStore) -> None:
    for name in (".tmp-step-000000000009", ".trash-x", "step-9", "notes", "step-000000000004-best"):
        (folder / name).mkdir()
    (folder / THREE).rename(folder / "step-000000000003-final")

    assert store.names() == [ONE, TWO, "step-000000000003-final"]


def test_a_folder_that_is_not_there_has_no_checkpoints(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path / "nowhere")

    assert store.names() == []
    assert store.read_latest() is None
    with pytest.raises(NoCheckpointError):
        store.latest()


def test_reading_gives_back_the_state(store: CheckpointStore) -> None:
    checkpoint, state = store.read(TWO)

    assert is_same(state_at(2), state)
    assert checkpoint.id == f"run/{TWO}@{checkpoint.manifest.sha256[:16]}"
    assert checkpoint.step == 2


def test_the_latest_is_the_newest_sound_one_and_looking_moves_nothing(folder: Path, store: CheckpointStore) -> None:
    damage(folder, THREE)

    assert store.latest().name == TWO
    assert store.names() == [ONE, TWO, THREE]


def test_reading_the_latest_sets_damaged_ones_aside(folder: Path, store: CheckpointStore) -> None:
    damage(folder, THREE)
    damage(folder, TWO)

    found = store.read_latest()

    assert found is not None
    assert is_same(state_at(1), found[1])
    assert names_in(folder) == [f".bad-{TWO}-0", f".bad-{THREE}-0", ONE]


def test_a_second_damaged_one_of_the_same_name_does_not_replace_the_first(folder: Path, store: CheckpointStore) -> None:
    (folder / f".bad-{THREE}-0").mkdir()
    damage(folder, THREE)

    store.read_latest()

    assert {f".bad-{THREE}-0", f".bad-{THREE}-1"} <= set(names_in(folder))


def test_when_all_are_damaged_it_says_so_the_second_time_too(folder: Path, store: CheckpointStore) -> None:
    for name in store.names():
        damage(folder, name)

    for _ in range(2):
        with pytest.raises(DamagedCheckpointError, match=r"Every checkpoint in .* is damaged.*\.bad-"):
            store.read_latest()
    assert len(names_in(folder)) == 3


def test_all_are_looked_at_and_the_unreadable_with_their_fault(folder: Path, store: CheckpointStore) -> None:
    (folder / TWO / "MANIFEST.json").write_bytes(b"{}")

    first, second, third = store.look_at_all()

    assert isinstance(second, Unreadable)
    assert second.name == TWO
    assert "MANIFEST.json" in second.fault
    assert [each.name for each in store.sound()] == [first.name, third.name] == [ONE, THREE]


def test_a_folder_that_is_a_link_is_no_checkpoint_of_the_run(folder: Path, store: CheckpointStore) -> None:
    shutil.move(folder / THREE, folder.parent / THREE)
    (folder / THREE).symlink_to(folder.parent / THREE)

    with pytest.raises(DamagedCheckpointError, match="link"):
        store.read(THREE)


def test_a_checkpoint_beyond_the_limit_is_not_read(folder: Path) -> None:
    store = CheckpointStore(folder, max_bytes=100)

    for look in (store.verify, store.read):
        with pytest.raises(DamagedCheckpointError, match="at most 100"):
            look(ONE)


# Deleting, pinning, setting aside


def test_a_deleted_one_is_gone_and_only_that(folder: Path, store: CheckpointStore) -> None:
    store.delete(TWO)

    assert names_in(folder) == [ONE, THREE]
    with pytest.raises(NoCheckpointError, match=TWO):
        store.delete(TWO)


def test_a_kill_between_the_two_halves_of_a_deletion_leaves_no_half_checkpoint(folder: Path) -> None:
    class Killed(LocalDisk):
        def remove(self, path: Path) -> None:
            if path.exists():
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        CheckpointStore(folder, disk=Killed()).delete(TWO)

    assert CheckpointStore(folder).names() == [ONE, THREE]
    CheckpointStore(folder).prepare()
    assert names_in(folder) == [ONE, THREE]


def test_what_is_newer_is_set_aside_and_not_lost(folder: Path, store: CheckpointStore) -> None:
    assert store.supersede_after(ONE) == [TWO, THREE]

    assert store.names() == [ONE]
    assert names_in(folder) == [f".superseded-{TWO}-0", f".superseded-{THREE}-0", ONE]


def test_a_run_whose_checkpoints_are_all_set_aside_does_not_begin_anew_in_silence(store: CheckpointStore) -> None:
    store.supersede_after(None)

    with pytest.raises(NoCheckpointError, match="set aside"):
        store.read_latest()


def test_pins_are_kept_in_a_file_and_can_be_taken_back(folder: Path, store: CheckpointStore) -> None:
    assert store.pins() == []

    store.pin(TWO)
    store.pin(ONE)
    store.pin(ONE)

    assert CheckpointStore(folder).pins() == [ONE, TWO]
    store.pin(TWO, pinned=False)
    assert store.pins() == [ONE]
    with pytest.raises(NoCheckpointError, match="to pin"):
        store.pin("step-000000000009")


@pytest.mark.parametrize("content", ["", "{}", '"all"', "[1]", "[" * 100_000, "\x00", "[NaN]"], ids=lambda c: c[:5])
def test_pins_that_cannot_be_read_are_not_taken_for_none(folder: Path, store: CheckpointStore, content: str) -> None:
    (folder / "pins.json").write_text(content)

    with pytest.raises(CheckpointError, match=r"pins\.json"):
        store.pins()


def test_pins_that_are_a_pipe_are_refused_and_not_waited_for(folder: Path, store: CheckpointStore) -> None:
    os.mkfifo(folder / "pins.json")

    with pytest.raises(CheckpointError, match=r"pins\.json"):
        store.pins()


# Writing


def test_preparing_sweeps_what_a_killed_process_left_and_nothing_else(folder: Path, store: CheckpointStore) -> None:
    for name in (f".tmp-{ONE}", ".trash-x", ".bad-y", ".superseded-z", "notes"):
        (folder / name).mkdir()
        (folder / name / "file").write_bytes(b"content")

    store.prepare()

    assert names_in(folder) == [".bad-y", ".superseded-z", "notes", ONE, TWO, THREE]


def test_a_name_that_is_no_checkpoints_is_not_written(store: CheckpointStore) -> None:
    for name in ("../step-000000000009", "step-9", "step-000000000009-best", ""):
        with pytest.raises(CheckpointError, match="is named like"):
            store.write(name, {}, lambda files: store.look(ONE).manifest)


def test_what_is_there_is_never_replaced(folder: Path, store: CheckpointStore) -> None:
    before = store.read(ONE)[0]

    with pytest.raises(CheckpointWriteError, match="taken"):
        store.write(ONE, {"state.json": [b"{}"]}, lambda files: before.manifest)

    assert store.verify(ONE) == before
    assert names_in(folder) == [ONE, TWO, THREE]


@pytest.mark.parametrize("call", ["make_folder", "write", "flush", "flush_folder", "rename", "the last flush"])
def test_a_write_that_fails_anywhere_leaves_nothing(folder: Path, store: CheckpointStore, call: str) -> None:
    """The last flush comes after the rename: the name is visible then, and nobody knows whether it is durable."""

    def fault(called: str, path: Path) -> int | None:
        is_last = called == "flush_folder" and path == folder
        return 5 if called == call or (call == "the last flush" and is_last) else None

    def describe(files: object) -> Manifest:
        return store.look(THREE).manifest

    with pytest.raises(CheckpointWriteError, match="intact"):
        write_folder(FailingDisk(fault), folder, "step-000000000004", {"state.json": [b"{}"]}, describe)

    assert names_in(folder) == [ONE, TWO, THREE]
