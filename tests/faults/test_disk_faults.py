"""Disks that are full, read-only, broken or slow: training goes on, and what was saved before stays as it is."""

from __future__ import annotations

import errno
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from hookloop.checkpoints import CheckpointStore
from hookloop.core import HookContext, TrainingLoop
from hookloop.errors import CheckpointWriteError
from hookloop.hooks import CheckpointHook
from hookloop.storage.disk import LocalDisk
from hookloop.testing import ToyWorkload
from tests.faults.command import python
from tests.saving import EVENT_SECONDS, FailingDisk, WaitingDisk, is_same, manager_in, names_in, save, saved, state_at

OFFSETS = 50


class FullDisk(LocalDisk):
    """A disk that takes so many bytes, and leaves the part of a file that still fitted."""

    def __init__(self, room: int) -> None:
        self._room = room

    def write(self, path: Path, chunks: Iterable[bytes | memoryview]) -> None:
        super().write(path, self._what_fits(chunks))

    def _what_fits(self, chunks: Iterable[bytes | memoryview]) -> Iterable[bytes]:
        for chunk in chunks:
            yield bytes(chunk[: self._room])
            self._room -= len(chunk)
            if self._room < 0:
                raise OSError(errno.ENOSPC, "No space left on device")


def bytes_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def test_a_full_disk_at_any_byte_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    saved(tmp_path, 1)
    size = bytes_of(tmp_path / "step-000000000001")

    for number in range(OFFSETS):
        with manager_in(tmp_path, disk=FullDisk(number * (size - 50) // OFFSETS)) as manager:
            with pytest.raises(CheckpointWriteError, match="No space left") as caught:
                save(manager, 2)
            assert caught.value.errno == errno.ENOSPC
        assert names_in(tmp_path) == ["step-000000000001"]
        assert is_same(state_at(1), CheckpointStore(tmp_path).read("step-000000000001")[1])
    saved(tmp_path, 2)
    assert len(CheckpointStore(tmp_path).names()) == 2


# A run on a disk that fails now and then


class Told:
    """Notes the failures that hooks are told of."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def on_hook_error(self, ctx: HookContext) -> None:
        self.errors.append(f"{type(ctx.exception).__name__}")


def epoch_of(path: Path) -> int:
    """Return the epoch a path belongs to; 0 for none."""
    name = next((part for part in path.parts if "step-" in part), "")
    return int(name.rpartition("step-")[2][:12] or 0)


def train(folder: Path, disk: LocalDisk, *others: object, epochs: int = 8, **options: Any) -> TrainingLoop:
    hook = CheckpointHook(manager_in(folder, disk=disk, asynchronous=options.pop("asynchronous", True)), **options)
    loop = TrainingLoop(ToyWorkload(epochs), [hook, *others], watch_signals=False)
    loop.run()
    return loop


def failing_at(epochs: set[int], number: int, call: str = "write") -> FailingDisk:
    return FailingDisk(lambda called, path: number if called == call and epoch_of(path) in epochs else None)


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(
    ("call", "number"),
    [
        ("write", errno.ENOSPC),
        ("write", errno.EDQUOT),
        ("make_folder", errno.EROFS),
        ("make_folder", errno.EACCES),
        ("write", errno.EMFILE),
        ("flush", errno.EIO),
        ("flush_folder", errno.EIO),
        ("rename", errno.EIO),
    ],
)
def test_a_write_that_fails_is_recorded_and_told_and_the_run_goes_on(
    tmp_path: Path, call: str, number: int, asynchronous: bool
) -> None:
    told = Told()

    loop = train(tmp_path, failing_at({3, 4, 6}, number, call), told, asynchronous=asynchronous)

    assert loop.state.outcome == "completed"
    assert [each.manifest.epochs for each in CheckpointStore(tmp_path).sound()] == [1, 2, 5, 7, 8, 8]
    assert not [name for name in names_in(tmp_path) if name.startswith(".")]
    failures = loop.state.failures["checkpoint/save"]
    assert failures.count == 3
    assert "CheckpointWriteError" in failures.last_error
    assert told.errors == ["CheckpointWriteError"] * 3
    for name in CheckpointStore(tmp_path).names():
        CheckpointStore(tmp_path).verify(name)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_three_failures_in_a_row_end_the_run(tmp_path: Path, asynchronous: bool) -> None:
    workload = ToyWorkload(20)
    manager = manager_in(tmp_path, disk=failing_at({3, 4, 5, 6}, errno.EIO), asynchronous=asynchronous)
    loop = TrainingLoop(workload, [CheckpointHook(manager)], watch_signals=False)

    with pytest.raises(CheckpointWriteError, match="Those before it are intact"):
        loop.run()

    assert loop.state.outcome == "failed"
    assert loop.clocks.epochs in (5, 6)  # written in a thread, the third failure is told of an epoch later
    assert names_in(tmp_path) == ["step-000000000001", "step-000000000002"]


def test_failures_that_are_not_in_a_row_never_end_the_run(tmp_path: Path) -> None:
    loop = train(tmp_path, failing_at({2, 3, 5, 6, 8, 9}, errno.EIO), epochs=10)

    assert loop.state.outcome == "completed"
    assert loop.state.failures["checkpoint/save"].count == 6


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_last_save_that_fails_is_never_kept_quiet(tmp_path: Path, asynchronous: bool) -> None:
    disk = FailingDisk(lambda call, path: errno.ENOSPC if call == "write" and "-final" in str(path) else None)

    with pytest.raises(CheckpointWriteError, match="-final could not be written"):
        train(tmp_path, disk, epochs=3, asynchronous=asynchronous)

    assert names_in(tmp_path) == [f"step-{step:012d}" for step in (1, 2, 3)]


def test_a_failed_save_does_not_change_what_is_trained(tmp_path: Path) -> None:
    good = train(tmp_path / "good", LocalDisk())
    bad = train(tmp_path / "bad", failing_at({2, 4, 6}, errno.ENOSPC))

    assert bad.workload.state_dict() == good.workload.state_dict()


# A slow disk


def test_training_goes_on_while_a_slow_disk_writes_and_nothing_piles_up(tmp_path: Path) -> None:
    disk = WaitingDisk()
    trained_meanwhile: list[int] = []

    class Watching:
        """The save of epoch 4 is under way until epoch 7 has been trained."""

        def on_epoch_end(self, ctx: HookContext) -> None:
            if 4 < ctx.state.epoch < 8:
                assert disk.has_begun.wait(EVENT_SECONDS)
                assert CheckpointStore(tmp_path).names() == []
                trained_meanwhile.append(ctx.state.epoch)
            if ctx.state.epoch == 7:
                disk.may_go_on.set()

    train(tmp_path, disk, Watching(), epochs=12, checkpoint_interval=4)

    assert trained_meanwhile == [5, 6, 7]
    assert disk.most_at_once == 1
    assert [each.manifest.epochs for each in CheckpointStore(tmp_path).sound()] == [4, 8, 12, 12]


def test_a_save_that_is_due_before_a_slow_one_has_ended_waits_for_it(tmp_path: Path) -> None:
    """Two states in memory at once would be one too many: the second save holds training up."""
    disk = WaitingDisk()
    reached: list[int] = []

    class Watching:
        def on_epoch_start(self, ctx: HookContext) -> None:
            reached.append(ctx.state.epoch)

    training = threading.Thread(target=train, args=(tmp_path, disk, Watching()), kwargs={"epochs": 4})
    training.start()
    assert disk.has_begun.wait(EVENT_SECONDS)
    assert max(reached, default=0) <= 1
    disk.may_go_on.set()
    training.join(EVENT_SECONDS)

    assert reached == [0, 1, 2, 3]
    assert disk.most_at_once == 1


# Not enough room, known before anything is written


class SmallDisk(LocalDisk):
    """A disk that says how little room it has, and would take anything."""

    def __init__(self, free: int | None) -> None:
        self.free = free
        self.calls: list[str] = []

    def free_bytes(self, folder: Path) -> int | None:
        return self.free

    def make_folder(self, folder: Path) -> None:
        self.calls.append(folder.name)
        super().make_folder(folder)


def test_a_save_for_which_there_is_no_room_is_not_begun(tmp_path: Path) -> None:
    disk = SmallDisk(free=1000)
    with manager_in(tmp_path, disk=disk) as manager:
        with pytest.raises(CheckpointWriteError, match="1000 are free") as caught:
            save(manager, 1)
        assert caught.value.errno == errno.ENOSPC
        assert disk.calls == []

        disk.free = 10_000_000
        save(manager, 1)
        disk.free = None  # a file system that does not say
        save(manager, 2)

    assert len(manager.store.names()) == 2


# The kernel's own limits, in a process of their own

CHILD = """
import json, resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from hookloop.core import TrainingLoop
from hookloop.errors import CheckpointWriteError
from hookloop.hooks import CheckpointHook
from hookloop.testing import ToyWorkload
from tests.saving import manager_in
import os, signal, torch

class Limiting:
    stage = "observe"
    def on_epoch_end(self, ctx):
        limit(ctx.state.epoch)

{limit}

hook = CheckpointHook(manager_in(Path(sys.argv[1])))
loop = TrainingLoop(ToyWorkload(8), [hook, Limiting()], watch_signals=False)
loop.run()
print(json.dumps([loop.state.outcome, loop.state.failures["checkpoint/save"].count]))
"""

SHORT_FILES = """
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
HARD = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
def limit(epoch):
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000 if epoch in (3, 4) else HARD, HARD))
"""

NO_MORE_FILES = """
SOFT, HARD = resource.getrlimit(resource.RLIMIT_NOFILE)
def limit(epoch):
    resource.setrlimit(resource.RLIMIT_NOFILE, (SOFT, HARD))
    lowest = os.dup(0)  # the next descriptor there would be
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest if epoch in (3, 4) else SOFT, HARD))
"""


@pytest.mark.parametrize("limit", [SHORT_FILES, NO_MORE_FILES], ids=["short files", "no more files"])
def test_a_limit_of_the_kernel_is_survived(tmp_path: Path, limit: str) -> None:
    repository = Path(__file__).parents[2]

    finished = python("-c", CHILD.replace("{limit}", limit), tmp_path / "checkpoints", repository)

    assert finished.stdout == '["completed", 2]\n', finished.stderr
    store = CheckpointStore(tmp_path / "checkpoints")
    assert [each.manifest.epochs for each in store.sound()] == [1, 2, 5, 6, 7, 8, 8]
    assert not [name for name in names_in(store.folder) if name.startswith(".tmp-")]
    for name in store.names():
        store.verify(name)


# A real disk that is full

REAL = """
import sys, os
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from hookloop.checkpoints import CheckpointStore
from hookloop.errors import CheckpointWriteError
from tests.saving import about, manager_in, names_in
import torch

folder = Path(sys.argv[1]) / "checkpoints"
with manager_in(folder) as manager:
    saved, full = 0, 0
    for step in range(1, 20):
        try:
            saved += manager.save({"a": torch.full((100_000,), float(step))}, about(step))
        except CheckpointWriteError as error:
            full += 1
    for name in manager.store.names():
        manager.store.verify(name)
    left = [name for name in names_in(folder) if name.startswith(".")]
    manager.store.delete(manager.store.names()[0])
    again = manager.save({"a": torch.full((100_000,), 99.0)}, about(99))
print(saved, full, len(left), again)
"""


@pytest.mark.faults
@pytest.mark.parametrize("is_asked_first", [True, False])
def test_a_real_disk_that_is_full_keeps_what_it_has(tmp_path: Path, is_asked_first: bool) -> None:
    """With and without the look at the free space: the disk's own refusal must be survived, too."""
    (tmp_path / "disk").mkdir()
    program = REAL if is_asked_first else REAL.replace("import torch\n", UNASKED)
    (tmp_path / "program.py").write_text(program)
    mount = f"mount -t tmpfs -o size=4m none {tmp_path}/disk && exec {sys.executable} {tmp_path}/program.py"
    repository = Path(__file__).parents[2]
    inside = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", f"{mount} {tmp_path}/disk {repository}"]
    try:
        finished = subprocess.run(inside, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no unshare on this machine")
    if "unshare" in finished.stderr or "mount:" in finished.stderr:
        pytest.skip(f"a disk of one's own is not permitted here: {finished.stderr.strip()[:100]}")

    saved_count, full, left, again = finished.stdout.split()
    assert (left, again) == ("0", "True"), finished.stderr
    assert int(saved_count) >= 5
    assert int(saved_count) + int(full) == 19


UNASKED = """
import torch
from hookloop.storage.disk import LocalDisk
LocalDisk.free_bytes = lambda self, folder: None
"""
