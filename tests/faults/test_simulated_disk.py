"""The model of power loss: it allows what POSIX allows, spares what is flushed, and misses no forgotten flush."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookloop.storage.disk import Disk, LocalDisk, make_folders
from tests.faults.simulated_disk import (
    CrashState,
    ForgetfulDisk,
    RecordingDisk,
    certain_tree,
    crash_states,
    scratch_folder,
    useful_flushes,
)

FILES = {"model": b"weights" * 9, "state": b"counters" * 7}


# A toy protocol: folders that appear whole, and the oldest of which goes


def save(disk: Disk, root: Path, number: int) -> None:
    temporary = root / "steps" / f".tmp-{number}"
    disk.make_folder(temporary)
    for name, content in FILES.items():
        disk.write(temporary / name, [content])
        disk.flush(temporary / name)
    disk.flush_folder(temporary)
    disk.rename(temporary, root / "steps" / f"step-{number}")
    disk.flush_folder(root / "steps")


def drop(disk: Disk, root: Path, number: int) -> None:
    trash = root / "steps" / f".trash-{number}"
    disk.rename(root / "steps" / f"step-{number}", trash)
    disk.flush_folder(root / "steps")
    disk.remove(trash)


def run(disk: RecordingDisk, saves: int) -> list[tuple[int, set[int]]]:
    """Save a few times, keeping two; return after how many operations which saves were promised."""
    promises = [(0, set[int]())]
    make_folders(disk, disk.root / "steps")
    for number in range(saves):
        save(disk, disk.root, number)
        promises.append((len(disk.ops), {number} | {number - 1} & set(range(number))))
        if number >= 2:
            drop(disk, disk.root, number - 2)
    return promises


def promised(promises: list[tuple[int, set[int]]], completed: int) -> set[int]:
    return [numbers for at, numbers in promises if at <= completed][-1]


def violation(folder: Path, numbers: set[int]) -> str | None:
    """Read a state as the real code would; this toy has no checksums, so all that is visible must be whole."""
    visible = {name for name in LocalDisk().names(folder / "steps") if name.startswith("step-")}
    for name in visible:
        if {path.name: path.read_bytes() for path in (folder / "steps" / name).iterdir()} != FILES:
            return f"{name} is damaged"
    lost = {f"step-{number}" for number in numbers} - visible
    return f"{sorted(lost)} lost" if lost else None


def violations(disk: RecordingDisk, promises: list[tuple[int, set[int]]]) -> Iterator[str | None]:
    """Yield for every state what is wrong with it, or None."""
    with scratch_folder() as scratch:
        for state in crash_states(disk.ops):
            what = violation(state.build(scratch / "state"), promised(promises, state.completed))
            shutil.rmtree(scratch / "state")
            yield what and f"after {state.completed} operations, {state.how}: {what}"


def recorder(tmp_path: Path) -> RecordingDisk:
    (tmp_path / "root").mkdir()
    return RecordingDisk(tmp_path / "root")


def test_the_toy_protocol_survives_a_power_loss_at_any_instant(tmp_path: Path) -> None:
    disk = recorder(tmp_path)
    promises = run(disk, saves=12)

    found = list(violations(disk, promises))

    assert set(found) == {None}
    assert len(found) >= 1000


def test_every_forgotten_flush_of_the_toy_protocol_is_found(tmp_path: Path) -> None:
    recorded = recorder(tmp_path)
    run(recorded, saves=3)
    num_flushes = len(recorded.flush_calls)
    assert useful_flushes(recorded.ops) == list(range(num_flushes))
    assert num_flushes == 1 + 3 * 4 + 1

    for forgotten in range(num_flushes):
        root = tmp_path / f"root-{forgotten}"
        root.mkdir()
        disk = ForgetfulDisk(root, forgotten)
        promises = run(disk, saves=3)

        assert len(disk.flush_calls) == num_flushes - 1
        assert any(violations(disk, promises)), recorded.flush_calls[forgotten]


def test_a_protocol_that_flushes_no_file_is_found(tmp_path: Path) -> None:
    class Careless(RecordingDisk):
        """A disk on which a file is never flushed."""

        def flush(self, path: Path) -> None:
            pass

    (tmp_path / "root").mkdir()
    disk = Careless(tmp_path / "root")

    assert any(violations(disk, run(disk, saves=1)))


# What the model allows


def last_states(disk: RecordingDisk) -> list[CrashState]:
    return [state for state in crash_states(disk.ops, samples=200) if state.completed == len(disk.ops)]


def trees(disk: RecordingDisk) -> list[dict[str, bytes | None]]:
    return [state.tree for state in last_states(disk)]


def test_a_file_that_was_not_flushed_may_be_anything_or_absent(tmp_path: Path) -> None:
    disk = recorder(tmp_path)
    disk.write(disk.root / "file", [b"content"])

    contents = {tree.get("file") for tree in trees(disk)}

    assert {None, b"", b"con", b"content", bytes(7), b"cont\0\0\0"} <= contents


def test_a_flushed_file_is_whole_or_has_no_name(tmp_path: Path) -> None:
    disk = recorder(tmp_path)
    disk.write(disk.root / "file", [b"content"])
    disk.flush(disk.root / "file")

    assert sorted(trees(disk), key=len) == [{}, {"file": b"content"}]


def test_a_flushed_name_says_nothing_of_the_content(tmp_path: Path) -> None:
    disk = recorder(tmp_path)
    disk.write(disk.root / "file", [b"content"])
    disk.flush_folder(disk.root)

    assert {len(tree["file"] or b"") for tree in trees(disk)} >= {0, 3, 7}


def test_a_folder_goes_with_its_name_however_well_its_files_are_flushed(tmp_path: Path) -> None:
    disk = recorder(tmp_path)
    disk.make_folder(disk.root / "folder")
    disk.write(disk.root / "folder" / "file", [b"content"])
    disk.flush(disk.root / "folder" / "file")
    disk.flush_folder(disk.root / "folder")

    assert sorted(trees(disk), key=len) == [{}, {"folder": None, "folder/file": b"content"}]

    disk.flush_folder(disk.root)

    assert trees(disk) == [{"folder": None, "folder/file": b"content"}]


def test_changes_in_one_folder_may_arrive_in_any_order(tmp_path: Path) -> None:
    disk = recorder(tmp_path)
    for name in "abc":
        disk.make_folder(disk.root / name)

    found = {"".join(sorted(tree)) for tree in trees(disk)}

    assert found == {"", "a", "b", "c", "ab", "ac", "bc", "abc"}


def test_a_rename_within_a_folder_is_whole_and_one_between_folders_is_not(tmp_path: Path) -> None:
    disk = recorder(tmp_path)
    for name in ("old", "new"):
        disk.make_folder(disk.root / name)
    disk.write(disk.root / "old" / "file", [b"content"])
    disk.flush(disk.root / "old" / "file")
    disk.flush_folder(disk.root / "old")
    disk.flush_folder(disk.root)

    disk.rename(disk.root / "old" / "file", disk.root / "old" / "renamed")
    within = {tuple(name for name, content in tree.items() if content) for tree in trees(disk)}
    assert within == {("old/file",), ("old/renamed",)}

    disk.flush_folder(disk.root / "old")
    disk.rename(disk.root / "old" / "renamed", disk.root / "new" / "file")
    between = {tuple(name for name, content in tree.items() if content) for tree in trees(disk)}
    assert between == {("old/renamed",), ("new/file",), ("new/file", "old/renamed"), ()}


def test_a_removed_folder_may_be_there_in_part(tmp_path: Path) -> None:
    (tmp_path / "root" / "folder").mkdir(parents=True)
    for name in "ab":
        (tmp_path / "root" / "folder" / name).write_bytes(b"content")
    disk = RecordingDisk(tmp_path / "root")
    num_present = len(disk.ops)
    disk.remove(disk.root / "folder")

    during = {tuple(state.tree) for state in crash_states(disk.ops) if state.completed == num_present}
    after = {tuple(tree) for tree in trees(disk)}

    assert {("folder", "folder/a", "folder/b"), ("folder", "folder/b")} <= during
    assert after >= during | {()}


def test_what_was_there_at_the_start_is_durable(tmp_path: Path) -> None:
    (tmp_path / "root" / "folder").mkdir(parents=True)
    (tmp_path / "root" / "folder" / "file").write_bytes(b"content")
    disk = RecordingDisk(tmp_path / "root")

    assert trees(disk) == [{"folder": None, "folder/file": b"content"}]


def test_calls_outside_the_folder_are_done_and_not_recorded(tmp_path: Path) -> None:
    disk = recorder(tmp_path)

    disk.write(tmp_path / "outside", [b"content"])
    make_folders(disk, disk.root)

    assert (tmp_path / "outside").read_bytes() == b"content"
    assert disk.ops == []


def test_a_flush_that_has_nothing_to_flush_is_not_useful(tmp_path: Path) -> None:
    disk = recorder(tmp_path)
    disk.write(disk.root / "file", [b"content"])
    for flush in (disk.flush, disk.flush):
        flush(disk.root / "file")
    for _ in range(2):
        disk.flush_folder(disk.root)

    assert useful_flushes(disk.ops) == [0, 2]


def test_the_same_seed_gives_the_same_states_and_another_gives_others(tmp_path: Path) -> None:
    disk = recorder(tmp_path)
    run(disk, saves=2)

    assert list(crash_states(disk.ops)) == list(crash_states(disk.ops))
    assert list(crash_states(disk.ops)) != list(crash_states(disk.ops, seed=1))


def test_no_state_is_tried_twice_for_one_instant_of_a_plain_call(tmp_path: Path) -> None:
    disk = recorder(tmp_path)
    make_folders(disk, disk.root / "steps")
    save(disk, disk.root, 0)

    states = [(state.completed, tuple(state.tree.items())) for state in crash_states(disk.ops)]

    assert len(states) == len(set(states))


# The model against the real disk

calls = st.lists(
    st.tuples(
        st.sampled_from(["make_folder", "write", "rename", "remove", "flush", "flush_folder"]),
        st.sampled_from(["a", "b", "a/a", "a/b", "b/a", "a/a/a"]),
        st.sampled_from(["a", "b", "c", "a/b", "b/b", "b/c"]),
    ),
    max_size=25,
)


def call(disk: Disk, kind: str, path: Path, other: Path) -> None:
    actions: dict[str, Callable[[], None]] = {
        "make_folder": lambda: disk.make_folder(path),
        "write": lambda: disk.write(path, [str(other).encode()]),
        "rename": lambda: disk.rename(path, other),
        "remove": lambda: disk.remove(path),
        "flush": lambda: disk.flush(path),
        "flush_folder": lambda: disk.flush_folder(path),
    }
    with contextlib.suppress(OSError):  # a call that makes no sense is refused, and must leave no trace in the record
        actions[kind]()


@settings(max_examples=150, deadline=None)
@given(calls)
def test_without_a_crash_the_model_and_the_real_folder_agree(
    tmp_path_factory: pytest.TempPathFactory, program: list[tuple[str, str, str]]
) -> None:
    root = tmp_path_factory.mktemp("root")
    disk = RecordingDisk(root)
    for kind, path, other in program:
        call(disk, kind, root / path, root / other)

    real = {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in sorted(root.rglob("*"))
    }

    assert certain_tree(disk.ops) == real
    assert real in trees(disk)


@settings(max_examples=100, deadline=None)
@given(calls)
def test_when_everything_is_flushed_a_crash_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, program: list[tuple[str, str, str]]
) -> None:
    root = tmp_path_factory.mktemp("root")
    disk = RecordingDisk(root)
    for kind, path, other in program:
        call(disk, kind, root / path, root / other)
    for path in [root, *root.rglob("*")]:
        if path.is_dir():
            disk.flush_folder(path)
        else:
            disk.flush(path)

    (state,) = last_states(disk)
    built = state.build(tmp_path_factory.mktemp("built") / "state")

    assert certain_tree(RecordingDisk(built).ops) == certain_tree(disk.ops)
