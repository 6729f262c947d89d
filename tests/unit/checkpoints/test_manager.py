"""Saving and loading: at once or in a thread, one at a time, and no failure is lost."""

from __future__ import annotations

import errno
import json
import logging
import threading
from pathlib import Path
from typing import Any

import pytest
import torch

from hookloop.checkpoints import CheckpointManager, CheckpointStore, Description, Retention
from hookloop.errors import (
    CheckpointError,
    CheckpointWriteError,
    DamagedCheckpointError,
    NonFiniteError,
    RunLockedError,
)
from tests.saving import (
    EVENT_SECONDS,
    PARTS,
    FailingDisk,
    WaitingDisk,
    about,
    is_same,
    manager_in,
    names_in,
    save,
    saved,
    state_at,
)


def failing(is_faulty: Any = lambda path: True) -> FailingDisk:
    """A disk that is full for every manifest of which ``is_faulty`` holds."""
    return FailingDisk(
        lambda call, path: (
            errno.ENOSPC if call == "write" and path.name == "MANIFEST.json" and is_faulty(path) else None
        )
    )


@pytest.mark.parametrize("asynchronous", [False, True])
def test_what_is_saved_is_loaded_bit_for_bit(tmp_path: Path, asynchronous: bool) -> None:
    with manager_in(tmp_path, asynchronous=asynchronous) as manager:
        save(manager, 1, 2)
        durable = manager.collect(wait=True)
        _, state = manager.load("latest")

    assert [each.name for each in durable] == ["step-000000000001", "step-000000000002"]
    assert is_same(state_at(2), state)
    assert is_same(state_at(2), manager.load_latest())


def test_a_second_save_of_the_same_step_is_left_out(tmp_path: Path) -> None:
    with manager_in(tmp_path) as manager:
        assert manager.save(state_at(1), about(1))
        assert not manager.save(state_at(1), about(1))
        assert len(manager.collect()) == 1


def test_the_state_that_is_written_is_that_of_the_save_and_not_of_later(tmp_path: Path) -> None:
    disk = WaitingDisk()
    with manager_in(tmp_path, asynchronous=True, disk=disk) as manager:
        state = state_at(1)
        manager.save(state, about(1), parts=PARTS)
        assert disk.has_begun.wait(EVENT_SECONDS)
        state["model"]["weight"].zero_()
        state["counters"]["step"] = 99
        disk.may_go_on.set()

    assert is_same(state_at(1), CheckpointStore(tmp_path).read("step-000000000001")[1])


def test_nothing_is_durable_before_its_write_has_ended(tmp_path: Path) -> None:
    disk = WaitingDisk()
    with manager_in(tmp_path, asynchronous=True, disk=disk) as manager:
        save(manager, 1)
        assert disk.has_begun.wait(EVENT_SECONDS)

        assert manager.collect() == []
        assert manager.store.names() == []

        disk.may_go_on.set()
        assert [each.step for each in manager.collect(wait=True)] == [1]


def test_a_periodic_save_is_skipped_while_the_writer_is_busy_if_it_may(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk = WaitingDisk()
    with manager_in(tmp_path, asynchronous=True, disk=disk, when_busy="skip") as manager:
        save(manager, 1)
        assert disk.has_begun.wait(EVENT_SECONDS)

        assert not manager.save(state_at(2), about(2), parts=PARTS)
        assert "step-000000000002 is left out" in caplog.text

        disk.may_go_on.set()
        assert manager.save(state_at(3), about(3, kind="final"), parts=PARTS)
    assert manager.store.names() == ["step-000000000001", "step-000000000003-final"]


def test_a_save_waits_for_the_one_before_so_that_only_one_is_in_memory(tmp_path: Path) -> None:
    disk = WaitingDisk()
    with manager_in(tmp_path, asynchronous=True, disk=disk, when_busy="wait") as manager:
        save(manager, 1)
        assert disk.has_begun.wait(EVENT_SECONDS)
        second = threading.Thread(target=save, args=(manager, 2))
        second.start()
        assert second.is_alive()
        assert manager.store.names() == []

        disk.may_go_on.set()
        second.join(EVENT_SECONDS)
        assert not second.is_alive()
        manager.collect(wait=True)

    assert disk.most_at_once == 1
    assert is_same(state_at(1), manager.store.read("step-000000000001")[1])
    assert is_same(state_at(2), manager.store.read("step-000000000002")[1])


def test_many_saves_use_the_same_memory(tmp_path: Path) -> None:
    pointers: set[int] = set()

    class Watching(FailingDisk):
        def write(self, path: Path, chunks: Any) -> None:
            views = list(chunks)
            pointers.update(
                torch.frombuffer(view, dtype=torch.uint8).data_ptr() for view in views if isinstance(view, memoryview)
            )
            super().write(path, views)

    with manager_in(tmp_path, asynchronous=True, disk=Watching(lambda call, path: None)) as manager:
        for step in range(1, 9):
            manager.save(state_at(step), about(step), parts=PARTS)

    assert len(manager.store.names()) == 8
    assert len(pointers) == 3  # model, optimizer and the rest


# Failures


def test_a_failed_write_surfaces_when_it_is_collected_and_the_next_save_works(tmp_path: Path) -> None:
    disk = failing(lambda path: "0002" in str(path))
    with manager_in(tmp_path, asynchronous=True, disk=disk) as manager:
        save(manager, 1)
        manager.collect(wait=True)
        save(manager, 2)
        with pytest.raises(CheckpointWriteError, match="step-000000000002 could not be written") as caught:
            manager.collect(wait=True)
        assert caught.value.errno == errno.ENOSPC
        assert str(caught.value).startswith("The checkpoint step-000000000002 could")
        save(manager, 3)

    assert names_in(tmp_path) == ["step-000000000001", "step-000000000003"]


def test_a_failed_write_that_nobody_collected_surfaces_at_the_close(tmp_path: Path) -> None:
    manager = manager_in(tmp_path, asynchronous=True, disk=failing())
    save(manager, 1)

    with pytest.raises(CheckpointWriteError):
        manager.close()

    with manager_in(tmp_path):  # the lock was given back all the same
        assert names_in(tmp_path) == []


def test_closing_waits_for_the_writer_and_ends_its_thread(tmp_path: Path) -> None:
    disk = WaitingDisk()
    manager = manager_in(tmp_path, asynchronous=True, disk=disk)
    save(manager, 1)
    assert disk.has_begun.wait(EVENT_SECONDS)
    threading.Thread(target=disk.may_go_on.set).start()

    manager.close()

    assert manager.store.names() == ["step-000000000001"]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("checkpoint-writer")]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_model_that_is_not_finite_is_not_written(tmp_path: Path, asynchronous: bool) -> None:
    state = state_at(1)
    state["model"]["weight"][0, 0] = float("nan")

    def write() -> None:
        with manager_in(tmp_path, asynchronous=asynchronous) as manager:
            manager.save(state, about(1), parts=PARTS)

    with pytest.raises(NonFiniteError, match="weight"):
        write()

    assert names_in(tmp_path) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"step": -1}, {"step": 10**12}, {"metrics": {"a": float("nan")}}, {"metadata": {"a": {1, 2}}},
        {"exactness": "\x1b[31m"}, {"metadata": {"a": "x" * 5_000_000}}, {"clocks": {"epochs": "one"}},
    ],
    ids=lambda fields: ascii(fields)[:40],
)  # fmt: skip
def test_a_description_that_could_not_be_read_again_is_refused(tmp_path: Path, fields: dict[str, Any]) -> None:
    with manager_in(tmp_path) as manager, pytest.raises(CheckpointError, match="cannot be described"):
        manager.save(state_at(1), Description(**{"step": 1, **fields}))

    assert names_in(tmp_path) == []


# Retention


def test_old_ones_go_once_a_new_one_is_durable(tmp_path: Path) -> None:
    with manager_in(tmp_path, retention=Retention(keep_last=2, keep_best=1)) as manager:
        for step, score in ((1, 5.0), (2, 1.0), (3, 1.0), (4, 1.0)):
            save(manager, step, metrics={"return/mean": score})

    assert names_in(tmp_path) == ["step-000000000001", "step-000000000003", "step-000000000004"]


def test_what_is_pinned_or_held_stays(tmp_path: Path) -> None:
    with manager_in(tmp_path, retention=Retention(keep_last=1)) as manager:
        save(manager, 1)
        manager.store.pin("step-000000000001")
        save(manager, 2)
        manager.hold("step-000000000002")
        save(manager, 3)
        assert len(manager.store.names()) == 3
        manager.hold("step-000000000002", held=False)
        save(manager, 4)

    assert manager.store.names() == ["step-000000000001", "step-000000000004"]


@pytest.mark.parametrize("fault", ["pins", "rename"])
def test_a_failure_to_tidy_up_does_not_fail_the_save(
    tmp_path: Path, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FailingDisk(lambda call, path: errno.EIO if fault == call and ".trash-" in path.name else None)
    with manager_in(tmp_path, retention=Retention(keep_last=1), disk=disk) as manager:
        save(manager, 1)
        if fault == "pins":
            (tmp_path / "pins.json").write_text("{")
        with caplog.at_level(logging.WARNING):
            save(manager, 2)
        assert [each.step for each in manager.collect()] == [1, 2]

    assert "removed" in caplog.text
    assert manager.store.names() == ["step-000000000001", "step-000000000002"]


# Restoring


def test_restoring_sets_what_is_newer_aside(tmp_path: Path) -> None:
    saved(tmp_path, 1, 2, 3)
    with manager_in(tmp_path) as manager:
        found = manager.restore("2")
        assert found is not None
        assert is_same(state_at(2), found[1])
        save(manager, 4)
        checkpoint = manager.store.look("step-000000000004")

    assert manager.store.names() == ["step-000000000001", "step-000000000002", "step-000000000004"]
    assert checkpoint.manifest.parent == "step-000000000002"
    assert ".superseded-step-000000000003-0" in names_in(tmp_path)


def test_restoring_from_elsewhere_names_where_the_weights_come_from(tmp_path: Path) -> None:
    other = saved(tmp_path / "other", 7)
    with manager_in(tmp_path / "mine") as manager:
        found = manager.restore(str(other / "step-000000000007"))
        assert found is not None
        save(manager, 8)

    assert manager.store.look("step-000000000008").manifest.parent == found[0].id


def test_there_is_nothing_to_restore_in_a_new_folder(tmp_path: Path) -> None:
    with manager_in(tmp_path) as manager:
        assert manager.restore() is None
        assert manager.load_latest() is None


def test_restoring_a_damaged_one_by_name_moves_nothing(tmp_path: Path) -> None:
    saved(tmp_path, 1, 2)
    (tmp_path / "step-000000000002" / "state.json").unlink()

    with manager_in(tmp_path) as manager, pytest.raises(DamagedCheckpointError):
        manager.restore("2")

    assert names_in(tmp_path) == ["step-000000000001", "step-000000000002"]


def test_only_one_manager_writes_to_a_folder(tmp_path: Path) -> None:
    with manager_in(tmp_path), pytest.raises(RunLockedError):
        CheckpointManager(tmp_path).save({}, about(1))


def test_the_manifest_says_what_the_checkpoint_is(tmp_path: Path) -> None:
    with manager_in(tmp_path, config_sha256="abc") as manager:
        manager.save(state_at(1), about(1, metrics={"loss": 0.5}, metadata={"note": "x"}, attempt=2), parts=PARTS)
    written = json.loads((tmp_path / "step-000000000001" / "MANIFEST.json").read_text())

    assert {
        "step": 1,
        "attempt": 2,
        "config_sha256": "abc",
        "parent": None,
        "kind": "periodic",
    }.items() <= written.items()
    assert sorted(written["files"]) == ["model.safetensors", "optimizer.safetensors", "state.json", "state.safetensors"]
    assert written["environment"]["torch"] == torch.__version__
