"""Damage: whatever happens to a checkpoint's files is found, the one before is used, and nothing starts over."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hookloop.checkpoints import CheckpointStore
from hookloop.errors import DamagedCheckpointError
from tests.faults.command import hookloop, python
from tests.faults.simulated_disk import scratch_folder
from tests.saving import is_same, names_in

FILES = ("MANIFEST.json", "model.safetensors", "optimizer.safetensors", "state.json", "state.safetensors")
FLIPS = 50


@pytest.fixture(scope="module")
def template(trained_run: Path) -> Path:
    return trained_run / "checkpoints"


@pytest.fixture
def copies(template: Path) -> Iterator[Callable[[], Path]]:
    """Makes fresh copies of the checkpoints, one after another in the same place."""
    with scratch_folder() as scratch:

        def copy() -> Path:
            shutil.rmtree(scratch / "checkpoints", ignore_errors=True)
            return shutil.copytree(template, scratch / "checkpoints")

        yield copy


def require_found(folder: Path, bad: str) -> None:
    """Assert that the damage of one checkpoint is found in every way of reading it, and that the others are used."""
    store = CheckpointStore(folder)
    good = [name for name in store.names() if name != bad]
    before = names_in(folder)
    for look in (store.verify, store.read):
        with pytest.raises(DamagedCheckpointError):
            look(bad)
    assert names_in(folder) == before, "a checkpoint that was asked for by name was moved"

    found = store.read_latest()

    assert found is not None
    assert found[0].name == good[-1]
    assert is_same(store.read(good[-1])[1], found[1])
    assert store.names() == good
    assert f".bad-{bad}-0" in names_in(folder)


def newest(folder: Path) -> Path:
    return folder / CheckpointStore(folder).names()[-1]


def before_newest(folder: Path) -> Path:
    return folder / CheckpointStore(folder).names()[-2]


# One file


def empty(path: Path) -> None:
    path.write_bytes(b"")


def half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def longer_by_a_byte(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


def zeros(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def deleted(path: Path) -> None:
    path.unlink()


def a_link_to_the_same_content(path: Path) -> None:
    path.rename(path.parents[1] / "elsewhere")
    path.symlink_to(path.parents[1] / "elsewhere")


def a_link_to_nothing(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def other_letters(path: Path) -> None:
    path.rename(path.with_name(path.name.upper() + "x"))


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "damage",
    [
        empty, half, longer_by_a_byte, zeros, deleted, a_link_to_the_same_content, a_link_to_nothing, a_folder, a_pipe,
        other_letters,
    ],
    ids=lambda damage: damage.__name__,
)  # fmt: skip
def test_a_damaged_file_is_found(copies: Callable[[], Path], damage: Callable[[Path], None], name: str) -> None:
    checkpoint = newest(copies())

    damage(checkpoint / name)

    require_found(checkpoint.parent, checkpoint.name)


@pytest.mark.parametrize("name", FILES)
def test_every_flipped_bit_is_found(copies: Callable[[], Path], name: str) -> None:
    for number in range(FLIPS):
        checkpoint = newest(copies())
        content = bytearray((checkpoint / name).read_bytes())
        content[number * (len(content) - 1) // (FLIPS - 1)] ^= 1 << number % 8
        (checkpoint / name).write_bytes(content)

        require_found(checkpoint.parent, checkpoint.name)


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_another_step_is_found(copies: Callable[[], Path], name: str) -> None:
    checkpoint = newest(copies())
    first = sorted(checkpoint.parent.glob("step-*"))[0]
    assert (first / name).read_bytes() != (checkpoint / name).read_bytes()

    shutil.copyfile(first / name, checkpoint / name)

    require_found(checkpoint.parent, checkpoint.name)


# The folder


def an_extra_file(folder: Path) -> None:
    (folder / "extra.safetensors").write_bytes(b"")


def an_extra_hidden_file(folder: Path) -> None:
    (folder / ".hidden").write_bytes(b"")


def an_extra_folder(folder: Path) -> None:
    (folder / "more").mkdir()


def a_manifest_alone(folder: Path) -> None:
    for name in FILES[1:]:
        (folder / name).unlink()


def nothing_in_it(folder: Path) -> None:
    for name in FILES:
        (folder / name).unlink()


def a_file_in_its_place(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_bytes(b"")


def a_link_in_its_place(folder: Path) -> None:
    folder.rename(folder.parents[1] / "outside")
    folder.symlink_to(folder.parents[1] / "outside")


def the_content_of_another(folder: Path) -> None:
    other = before_newest(folder.parent)
    shutil.rmtree(folder)
    shutil.copytree(other, folder)


@pytest.mark.parametrize(
    "damage",
    [
        an_extra_file, an_extra_hidden_file, an_extra_folder, a_manifest_alone, nothing_in_it, a_file_in_its_place,
        a_link_in_its_place, the_content_of_another,
    ],
    ids=lambda damage: damage.__name__,
)  # fmt: skip
def test_a_damaged_folder_is_found(copies: Callable[[], Path], damage: Callable[[Path], None]) -> None:
    checkpoint = newest(copies())

    damage(checkpoint)

    require_found(checkpoint.parent, checkpoint.name)


def test_a_folder_that_was_renamed_is_found(copies: Callable[[], Path]) -> None:
    checkpoint = newest(copies())

    checkpoint.rename(checkpoint.with_name("step-000000009999"))

    require_found(checkpoint.parent, "step-000000009999")


def test_two_folders_that_changed_their_names_are_both_found(copies: Callable[[], Path]) -> None:
    folder = copies()
    one, two = newest(folder), before_newest(folder)
    one.rename(folder / "third")
    two.rename(one)
    (folder / "third").rename(two)

    found = CheckpointStore(folder).read_latest()

    assert found is not None
    assert len(CheckpointStore(folder).names()) == 1


# The command


def damage_all(run: Path) -> None:
    for model in run.glob("checkpoints/step-*/model.safetensors"):
        half(model)


def test_a_run_with_a_damaged_checkpoint_goes_on_from_the_one_before(run: Path) -> None:
    bad = newest(run / "checkpoints")
    half(bad / "model.safetensors")

    finished = hookloop("train", "--resume", run, "--display", "off")

    assert finished.returncode == 0, finished.stderr
    assert f"{bad.name} is damaged and set aside" in finished.stderr
    assert f".bad-{bad.name}-0" in names_in(run / "checkpoints")


def test_a_run_of_which_all_is_damaged_is_refused_with_exit_4_and_nothing_is_trained(run: Path) -> None:
    damage_all(run)
    config = (run / "config.json").read_bytes()

    for _ in range(2):
        finished = hookloop("train", "--resume", run)

        assert finished.returncode == 4
        assert "error: Every checkpoint in" in finished.stderr
        assert "Bring one back from a copy, or begin a new run." in finished.stderr
        assert "Traceback" not in finished.stderr
    assert all(name.startswith(".bad-step-") for name in names_in(run / "checkpoints"))
    assert (run / "config.json").read_bytes() == config


def test_a_damaged_one_that_was_asked_for_ends_the_command_and_stays_where_it_is(run: Path) -> None:
    bad = newest(run / "checkpoints")
    before = names_in(run / "checkpoints")
    half(bad / "model.safetensors")

    for command in (
        ("train", "--resume", run, "--checkpoint", bad.name),
        ("train", "--resume", run, "--checkpoint", bad),
        ("export", run, "--checkpoint", "final", "--to", run / "out.safetensors"),
    ):
        finished = hookloop(*command)

        assert finished.returncode == 4, finished.stderr
        assert "model.safetensors has" in finished.stderr
    assert names_in(run / "checkpoints") == before
    assert not (run / "out.safetensors").exists()


def test_verify_names_the_damaged_and_the_sound(run: Path) -> None:
    bad = newest(run / "checkpoints")
    half(bad / "model.safetensors")

    finished = hookloop("checkpoints", run, "--verify")

    lines = finished.stdout.splitlines()
    assert finished.returncode == 4
    assert [line.split()[1].rstrip(":") for line in lines] == ["sound", "sound", "damaged"]


# A read that fails and says nothing about the checkpoint

OUT_OF_FILES = """
import os, resource, sys
from pathlib import Path
from hookloop.checkpoints import CheckpointStore
import hookloop.checkpoints.tree  # what is imported later would need a file, too
import torch

store = CheckpointStore(Path(sys.argv[1]))
taken = [os.dup(0) for _ in range(10)]
resource.setrlimit(resource.RLIMIT_NOFILE, (max(taken) + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
for read in (lambda: store.read(sys.argv[2]), lambda: store.verify(sys.argv[2]), store.look_at_all):
    try:
        read()
    except OSError as error:
        print(error.errno)
for _ in range(8):
    os.close(taken.pop())  # enough to list the names and to map every file of a checkpoint
print(store.read_latest()[0].name)
"""


def test_too_many_open_files_is_no_damage(run: Path) -> None:
    checkpoint = newest(run / "checkpoints")
    before = names_in(run / "checkpoints")

    finished = python("-c", OUT_OF_FILES, checkpoint.parent, checkpoint.name)

    assert finished.stdout.split() == ["24", "24", "24", checkpoint.name], finished.stderr
    assert names_in(run / "checkpoints") == before


@pytest.mark.parametrize("number", ["EACCES", "EMFILE", "ENOMEM"])
def test_no_right_to_read_is_no_damage(run: Path, number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real_open = os.open

    def refusing(path: object, *arguments: int, **options: int) -> int:
        if str(path).endswith("model.safetensors"):
            raise OSError(getattr(errno, number), number, str(path))
        return real_open(path, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refusing)
    before = names_in(run / "checkpoints")

    with pytest.raises(OSError, match=number):
        CheckpointStore(run / "checkpoints").read_latest()

    assert names_in(run / "checkpoints") == before
