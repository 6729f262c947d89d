"""The calls by which files reach a disk: nothing is replaced, nothing is followed, nothing is copied."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest

from hookloop.storage.atomic import write_bytes
from hookloop.storage.disk import Disk, LocalDisk, make_folders


@pytest.fixture
def disk() -> Disk:
    return LocalDisk()


class ListingDisk(LocalDisk):
    """A disk that lists the folders it makes and flushes, in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Path]] = []

    def make_folder(self, folder: Path) -> None:
        self.calls.append(("make", folder))
        super().make_folder(folder)

    def flush_folder(self, folder: Path) -> None:
        self.calls.append(("flush", folder))
        super().flush_folder(folder)


# Writing


def test_a_file_is_its_chunks_one_after_the_other(disk: Disk, tmp_path: Path) -> None:
    disk.write(tmp_path / "file", [b"one", memoryview(b"two"), b"", memoryview(b"")])

    assert (tmp_path / "file").read_bytes() == b"onetwo"


def test_a_view_of_numbers_is_written_as_its_bytes(disk: Disk, tmp_path: Path) -> None:
    numbers = array("d", range(10_000))

    disk.write(tmp_path / "file", [memoryview(numbers), memoryview(numbers)])

    assert (tmp_path / "file").read_bytes() == numbers.tobytes() * 2


def test_a_large_view_is_not_copied(disk: Disk, tmp_path: Path) -> None:
    content = bytearray(os.urandom(16)) * (1 << 20)

    tracemalloc.start()
    disk.write(tmp_path / "file", [memoryview(content)])
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert most_bytes < 1 << 20
    assert (tmp_path / "file").read_bytes() == content


def test_a_file_that_is_there_is_not_written_over(disk: Disk, tmp_path: Path) -> None:
    disk.write(tmp_path / "file", [b"old"])

    with pytest.raises(FileExistsError):
        disk.write(tmp_path / "file", [b"new"])

    assert (tmp_path / "file").read_bytes() == b"old"


def test_a_source_that_fails_leaves_what_it_gave(disk: Disk, tmp_path: Path) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"begun"
        raise OSError("the source is gone")

    with pytest.raises(OSError, match="the source is gone"):
        disk.write(tmp_path / "file", chunks())

    assert (tmp_path / "file").read_bytes() == b"begun"


def test_a_write_goes_on_after_a_short_one_and_says_when_there_is_no_more_room(tmp_path: Path) -> None:
    program = """
import resource, sys
from pathlib import Path
from hookloop.storage.disk import LocalDisk

resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
LocalDisk().write(Path(sys.argv[1]), [memoryview(b"x" * 600_000), memoryview(b"y" * 600_000)])
"""
    finished = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "file")], capture_output=True, text=True, check=False
    )

    assert "OSError: [Errno 27] File too large" in finished.stderr
    assert (tmp_path / "file").read_bytes() == b"x" * 600_000 + b"y" * 400_000


def test_files_and_folders_can_be_flushed(disk: Disk, tmp_path: Path) -> None:
    disk.write(tmp_path / "file", [b"content"])

    disk.flush(tmp_path / "file")
    disk.flush_folder(tmp_path)


def test_flushing_what_is_not_there_is_an_error(disk: Disk, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        disk.flush(tmp_path / "file")
    with pytest.raises(FileNotFoundError):
        disk.flush_folder(tmp_path / "folder")


def test_an_atomic_write_replaces_the_whole_file_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    write_bytes(tmp_path / "file", b"a long old content")
    write_bytes(tmp_path / "file", b"new")

    assert (tmp_path / "file").read_bytes() == b"new"
    assert LocalDisk().names(tmp_path) == ["file"]


# Renaming


def test_a_folder_is_renamed_with_what_is_in_it(disk: Disk, tmp_path: Path) -> None:
    disk.make_folder(tmp_path / "old")
    disk.write(tmp_path / "old" / "file", [b"content"])

    disk.rename(tmp_path / "old", tmp_path / "new")

    assert (tmp_path / "new" / "file").read_bytes() == b"content"
    assert disk.names(tmp_path) == ["new"]


@pytest.mark.parametrize("kind", ["file", "empty folder", "dangling symlink"])
def test_a_rename_replaces_nothing(disk: Disk, tmp_path: Path, kind: str) -> None:
    disk.make_folder(tmp_path / "old")
    new = tmp_path / "new"
    if kind == "file":
        new.write_bytes(b"precious")
    elif kind == "empty folder":
        new.mkdir()
    else:
        new.symlink_to(tmp_path / "nowhere")

    with pytest.raises(FileExistsError, match=r"old cannot be renamed to .*new: that name is taken"):
        disk.rename(tmp_path / "old", new)

    assert disk.names(tmp_path) == ["new", "old"]


# Removing


def test_a_folder_is_removed_with_all_that_is_in_it(disk: Disk, tmp_path: Path) -> None:
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    (tmp_path / "folder" / "inner" / "file").write_bytes(b"content")

    disk.remove(tmp_path / "folder")

    assert disk.names(tmp_path) == []


def test_removing_a_file_or_nothing_is_fine(disk: Disk, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")

    disk.remove(tmp_path / "file")
    disk.remove(tmp_path / "file")

    assert disk.names(tmp_path) == []


@pytest.mark.parametrize("inside", [False, True])
def test_removing_never_follows_a_symlink(disk: Disk, tmp_path: Path, inside: bool) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_bytes(b"content")
    (tmp_path / "folder").mkdir()
    link = tmp_path / "folder" / "link"
    link.symlink_to(elsewhere)

    disk.remove(tmp_path / "folder" if inside else link)

    assert not link.is_symlink()
    assert (elsewhere / "precious").read_bytes() == b"content"


# Folders


def test_names_are_sorted_and_a_missing_folder_has_none(disk: Disk, tmp_path: Path) -> None:
    for name in ("b", "a", ".hidden"):
        disk.write(tmp_path / name, [])

    assert disk.names(tmp_path) == [".hidden", "a", "b"]
    assert disk.names(tmp_path / "missing") == []


def test_a_folder_is_made_in_a_folder_that_exists_and_once(disk: Disk, tmp_path: Path) -> None:
    disk.make_folder(tmp_path / "folder")

    with pytest.raises(FileExistsError):
        disk.make_folder(tmp_path / "folder")
    with pytest.raises(FileNotFoundError):
        disk.make_folder(tmp_path / "missing" / "folder")


def test_each_missing_level_is_durable_before_the_next_is_made(tmp_path: Path) -> None:
    disk = ListingDisk()

    make_folders(disk, tmp_path / "a" / "b")

    assert disk.calls == [
        ("flush", tmp_path.parent),
        ("make", tmp_path / "a"),
        ("flush", tmp_path),
        ("make", tmp_path / "a" / "b"),
        ("flush", tmp_path / "a"),
    ]


def test_a_folder_that_exists_is_made_durable_for_its_maker_may_have_been_killed_too_early(tmp_path: Path) -> None:
    disk = ListingDisk()

    make_folders(disk, tmp_path)

    assert disk.calls == [("flush", tmp_path.parent)]


def test_a_folder_that_another_process_makes_first_is_taken_as_it_is(tmp_path: Path) -> None:
    class Overtaken(LocalDisk):
        def make_folder(self, folder: Path) -> None:
            folder.mkdir()
            raise FileExistsError(folder)

    make_folders(Overtaken(), tmp_path / "a" / "b")

    assert (tmp_path / "a" / "b").is_dir()


def test_a_file_in_the_way_of_a_folder_is_an_error(disk: Disk, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")

    with pytest.raises(FileExistsError):
        make_folders(disk, tmp_path / "a")
