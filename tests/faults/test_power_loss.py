"""Power loss: whatever instant the machine dies at, no checkpoint that was acknowledged is lost, and none is corrupt.

The real writing code runs over a disk that records its calls, a model makes every state a crash may leave, and the
real reading code is run on each of them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hookloop.checkpoints import Checkpoint, CheckpointManager, CheckpointStore, Manifest, Retention
from hookloop.checkpoints.folder import Chunks
from hookloop.checkpoints.manifest import FileEntry, name_of
from hookloop.errors import HookloopError
from hookloop.storage.lock import RunLock
from tests.faults.simulated_disk import (
    FLUSHES,
    CrashState,
    ForgetfulDisk,
    RecordingDisk,
    crash_states,
    scratch_folder,
    useful_flushes,
)
from tests.saving import is_same, manager_in, save, state_at

FOLDER = "checkpoints"


@dataclass(frozen=True, slots=True)
class Promise:
    """What holds from the moment at which so many operations had returned."""

    operations: int
    kept: frozenset[str] = field(default_factory=frozenset)
    """What was acknowledged and not let go since."""
    gone: frozenset[str] = field(default_factory=frozenset)
    """What was set aside, and must not come back."""


class PromisingStore(CheckpointStore):
    """The real store, noting what it has promised and when."""

    def __init__(self, disk: RecordingDisk) -> None:
        super().__init__(disk.root / FOLDER, disk=disk)
        self.promises = [Promise(0)]
        self._recorder = disk

    def write(
        self, name: str, files: Mapping[str, Chunks], describe: Callable[[dict[str, FileEntry]], Manifest]
    ) -> Checkpoint:
        self._promise(comes_back={name})
        written = super().write(name, files, describe)
        self._promise(keep={name})
        return written

    def delete(self, name: str) -> None:
        self._promise(let_go={name})
        super().delete(name)

    def supersede_after(self, name: str | None) -> list[str]:
        names = {each for each in self.names() if name is not None and each > name}
        self._promise(let_go=names)
        given_up = super().supersede_after(name)
        self._promise(is_gone=names)
        return given_up

    def _promise(
        self,
        keep: Collection[str] = (),
        let_go: Collection[str] = (),
        is_gone: Collection[str] = (),
        comes_back: Collection[str] = (),
    ) -> None:
        last = self.promises[-1]
        kept, gone = last.kept.union(keep).difference(let_go), last.gone.union(is_gone).difference(comes_back)
        self.promises.append(Promise(len(self._recorder.ops), kept, gone))

    def promised(self, completed: int) -> Promise:
        """Return all that held at some moment between the operations before and after."""
        before = [promise for promise in self.promises if promise.operations < completed][-1:]
        now = before + [promise for promise in self.promises if promise.operations == completed]
        kept, gone = (frozenset[str]().union(*names) for names in zip(*((p.kept, p.gone) for p in now), strict=True))
        return Promise(completed, kept, gone)


Program = Callable[[CheckpointManager], None]


def two_saves(manager: CheckpointManager) -> None:
    manager.retention = Retention(keep_last=1)
    save(manager, 1, 2)


def six_saves(manager: CheckpointManager, *, saves: int = 6) -> None:
    """Save, keeping the last two and the best, which is the first."""
    manager.retention = Retention(keep_last=2, keep_best=1)
    for step in range(1, saves + 1):
        save(manager, step, metrics={"return/mean": -step})
        manager.collect(wait=True)


def many_saves(manager: CheckpointManager) -> None:
    six_saves(manager, saves=9)


def a_return_to_an_earlier_one(manager: CheckpointManager) -> None:
    save(manager, 1, 2, 3)
    manager.restore("1")
    save(manager, 2)


def record(disk: RecordingDisk, program: Program, *, asynchronous: bool = False) -> PromisingStore:
    """Run a program on a disk, and return what was promised when."""
    # The lock is not written through the disk: nothing durable depends on it.
    lock = RunLock(disk.root.parent)
    manager = manager_in(disk.root / FOLDER, asynchronous=asynchronous, disk=disk, lock=lock)
    store = manager.store = PromisingStore(disk)
    with manager:
        program(manager)
    return store


def violation(folder: Path, promise: Promise) -> str | None:
    """Read a state as a run that is resumed does, and return what is wrong with it."""
    store = CheckpointStore(folder)
    visible = set(store.names())
    if lost := promise.kept - visible:
        return f"{sorted(lost)} lost"
    if back := promise.gone & visible:
        return f"{sorted(back)} came back"
    try:
        for name in visible:
            store.verify(name)
        found = store.read_latest()
    except HookloopError as error:
        return f"{type(error).__name__}: {error}"
    if found is None:
        return "nothing to go on from" if promise.kept else None
    checkpoint, state = found
    if not is_same(state_at(checkpoint.step), state):
        return f"{checkpoint.name} is not what was saved"
    newest = max(promise.kept, default=name_of(0))
    return f"{checkpoint.name} is older than {newest}" if checkpoint.name < newest else None


def violations(
    store: PromisingStore, disk: RecordingDisk, *, samples: int = 12, seed: int = 0, first: int = 0
) -> Iterator[str | None]:
    """Yield for every state, from the ``first`` operation on, what is wrong with it, or None."""
    with scratch_folder() as scratch:
        for state in crash_states(disk.ops, samples=samples, seed=seed):
            if state.completed < first:
                continue
            what = violation(state.build(scratch / "state") / FOLDER, store.promised(state.completed))
            shutil.rmtree(scratch / "state")
            yield what and f"after {state.completed} operations, {state.how}: {what}"


@pytest.fixture
def disk() -> Iterator[RecordingDisk]:
    with scratch_folder() as scratch:
        yield RecordingDisk(make(scratch / "root"))


def make(folder: Path) -> Path:
    folder.mkdir()
    return folder


@pytest.mark.parametrize("samples", [5, pytest.param(12, marks=pytest.mark.faults)])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_no_acknowledged_checkpoint_is_lost_at_any_instant(
    disk: RecordingDisk, asynchronous: bool, samples: int
) -> None:
    store = record(disk, six_saves, asynchronous=asynchronous)
    assert {0, 1, 2, 3, 4} == {len(promise.kept) for promise in store.promises}

    found = list(violations(store, disk, samples=samples))

    assert set(found) == {None}
    assert len(found) >= 80 * samples


def test_what_was_given_up_does_not_come_back(disk: RecordingDisk) -> None:
    store = record(disk, a_return_to_an_earlier_one)
    assert {name_of(3)} in [promise.gone for promise in store.promises]

    found = list(violations(store, disk))

    assert set(found) == {None}
    assert len(found) >= 200


def test_a_run_goes_on_from_any_state_and_saves_again(disk: RecordingDisk) -> None:
    """Every tenth state is resumed as a run would: what was left half done is cleared away."""
    record(disk, six_saves)
    with scratch_folder() as scratch:
        for state in list(crash_states(disk.ops))[::10]:
            resume(state, scratch)


def resume(state: CrashState, scratch: Path) -> None:
    folder = state.build(scratch / "state") / FOLDER
    with manager_in(folder) as manager:
        manager.restore()
        save(manager, 9)
    assert manager.store.names()[-1] == name_of(9)
    assert [path.name for path in folder.iterdir() if path.name.startswith((".tmp-", ".trash-", ".bad-"))] == []
    shutil.rmtree(scratch / "state")


@pytest.mark.parametrize(
    ("program", "every"),
    [
        (two_saves, 1),
        (a_return_to_an_earlier_one, 3),
        pytest.param(a_return_to_an_earlier_one, 1, marks=pytest.mark.faults),
    ],
)
def test_every_forgotten_flush_is_found(disk: RecordingDisk, program: Program, every: int) -> None:
    record(disk, program)
    useful = useful_flushes(disk.ops)
    assert len(useful) >= 16

    for forgotten in useful[::every]:
        with scratch_folder() as scratch:
            mutant = ForgetfulDisk(make(scratch / "root"), forgotten)
            store = record(mutant, program)

            first = [at for at, operation in enumerate(disk.ops) if operation.kind in FLUSHES][forgotten]
            assert any(violations(store, mutant, samples=0, first=first)), disk.flush_calls[forgotten]


@pytest.mark.faults
def test_no_acknowledged_checkpoint_is_lost_in_thousands_of_states(disk: RecordingDisk) -> None:
    store = record(disk, many_saves)

    found = [what for seed in range(2) for what in violations(store, disk, seed=seed)]

    assert set(found) == {None}
    assert len(found) >= 4000
