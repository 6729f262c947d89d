"""Folders that go to other places and come back: whole or refused, and never outside the folder they go into."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import fsspec
import pytest
from upath import UPath

from hookloop.errors import LocationError, MissingExtraError
from hookloop.storage.locations import fetch_folder, is_uri, publish_folder

FILES = {"MANIFEST.json": b'{"files": 2}', "model.safetensors": b"weights" * 1000, "state.json": b"{}"}
ROOM = {"max_bytes": 1 << 20, "max_files": 10}


@pytest.fixture(params=["memory", "file", "path"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A place of each kind, in which nothing is yet."""
    if request.param == "memory":
        root = f"memory://{uuid.uuid4().hex}"
        yield f"{root}/runs/copy"
        if UPath(root).exists():
            UPath(root).rmdir(recursive=True)
    else:
        local = str(tmp_path / "elsewhere" / "copy")
        yield f"file://{local}" if request.param == "file" else local


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return written(tmp_path / "folder", FILES)


def written(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def contents(folder: Path | UPath) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def put(uri: str, name: str, content: bytes) -> None:
    UPath(uri).mkdir(parents=True, exist_ok=True)
    (UPath(uri) / name).write_bytes(content)


def refusal_of(uri: str, folder: Path, *, max_bytes: int = 1 << 20, max_files: int = 10) -> str:
    with pytest.raises(LocationError) as caught:
        fetch_folder(uri, folder, max_bytes=max_bytes, max_files=max_files)
    assert not folder.exists() or list(folder.iterdir()) == []
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("s3://bucket/run", True),
        ("memory://run", True),
        ("webdav+https://host/run", True),
        ("/tmp/run", False),
        ("runs/one", False),
        ("C:/run", False),
        ("runs/a://b", False),
        ("://b", False),
        ("", False),
    ],
)
def test_a_uri_begins_with_a_scheme(text: str, answer: bool) -> None:
    assert is_uri(text) is answer


# There and back


def test_a_folder_goes_to_a_place_and_comes_back_the_same(folder: Path, uri: str, tmp_path: Path) -> None:
    publish_folder(folder, uri)
    fetch_folder(uri, tmp_path / "new" / "back", **ROOM)

    assert contents(UPath(uri)) == FILES
    assert contents(tmp_path / "new" / "back") == FILES


def test_files_larger_than_a_chunk_survive(uri: str, tmp_path: Path) -> None:
    files = {"MANIFEST.json": b"{}", "large.bin": os.urandom(3_000_001), "empty.bin": b""}
    publish_folder(written(tmp_path / "large", files), uri)

    fetch_folder(uri, tmp_path / "back", max_bytes=3_000_003, max_files=3)

    assert contents(tmp_path / "back") == files


def test_publishing_the_same_again_writes_nothing(folder: Path, uri: str) -> None:
    publish_folder(folder, uri)
    put(uri, "state.json", b"a mark by which a second write would show")

    publish_folder(folder, uri)

    assert contents(UPath(uri))["state.json"] == b"a mark by which a second write would show"


@pytest.mark.parametrize("manifest", [b"{}", b"", b'{"files": 2, "longer": true}'])
def test_what_is_published_never_changes(folder: Path, uri: str, manifest: bytes) -> None:
    put(uri, "MANIFEST.json", manifest)

    with pytest.raises(LocationError, match=r"already has a MANIFEST.json, and not that of .*folder"):
        publish_folder(folder, uri)

    assert contents(UPath(uri)) == {"MANIFEST.json": manifest}


def test_what_an_interrupted_copy_left_is_written_over(folder: Path, uri: str) -> None:
    put(uri, "model.safetensors", b"half")

    publish_folder(folder, uri)

    assert contents(UPath(uri)) == FILES


def test_the_manifest_is_written_last(folder: Path) -> None:
    class Watching(fsspec.get_filesystem_class("memory")):
        """A file system in memory that lists the files it is told to write."""

        protocol = "watching"
        opened: ClassVar[list[str]] = []

        def _open(self, path: str, mode: str = "rb", **options: object) -> object:
            if mode == "wb":
                self.opened.append(path.rpartition("/")[2])
            return super()._open(path, mode, **options)

    fsspec.register_implementation("watching", Watching, clobber=True)

    with pytest.warns(UserWarning, match="watching"):  # it has no class of paths of its own
        publish_folder(folder, f"watching://{uuid.uuid4().hex}")

    assert Watching.opened == ["model.safetensors", "state.json", "MANIFEST.json"]


# Publishing is refused


@pytest.mark.parametrize("name", [".hidden", "with space", "-dash", "x" * 101, "ünicode"])
def test_a_file_that_could_not_be_fetched_again_is_not_published(folder: Path, uri: str, name: str) -> None:
    (folder / name).write_bytes(b"content")

    with pytest.raises(LocationError, match="a name must be of letters, digits"):
        publish_folder(folder, uri)

    assert not UPath(uri).exists()


def test_folders_and_links_are_not_published(folder: Path, uri: str) -> None:
    (folder / "inner").mkdir()
    with pytest.raises(LocationError, match="'inner', which is no plain file"):
        publish_folder(folder, uri)
    (folder / "inner").rmdir()

    (folder / "link").symlink_to(folder / "state.json")
    with pytest.raises(LocationError, match="'link', which is no plain file"):
        publish_folder(folder, uri)


def test_a_folder_without_a_manifest_is_not_published(tmp_path: Path, uri: str) -> None:
    with pytest.raises(LocationError, match=r"has no MANIFEST.json"):
        publish_folder(written(tmp_path / "folder", {"state.json": b"{}"}), uri)
    with pytest.raises(LocationError, match=r"has no MANIFEST.json"):
        publish_folder(tmp_path / "missing", uri)


def test_a_place_that_cannot_be_written_is_named_with_the_cause(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"in the way")

    with pytest.raises(LocationError, match="file/copy cannot be used: ") as caught:
        publish_folder(folder, str(tmp_path / "file" / "copy"))

    assert caught.value.errno in (errno.EEXIST, errno.ENOTDIR)


# Fetching is refused


def test_a_place_without_a_manifest_is_no_copy(uri: str, tmp_path: Path) -> None:
    assert "has no MANIFEST.json, so it is no whole copy" in refusal_of(uri, tmp_path / "back")

    put(uri, "model.safetensors", b"half")

    assert "has no MANIFEST.json, so it is no whole copy" in refusal_of(uri, tmp_path / "back")


def test_more_files_than_allowed_are_refused(folder: Path, uri: str, tmp_path: Path) -> None:
    publish_folder(folder, uri)

    assert "more than the 2 files" in refusal_of(uri, tmp_path / "back", max_files=2)
    fetch_folder(uri, tmp_path / "back", max_bytes=1 << 20, max_files=3)


def test_more_bytes_than_allowed_are_refused_and_nothing_stays(folder: Path, uri: str, tmp_path: Path) -> None:
    publish_folder(folder, uri)
    all_bytes = sum(map(len, FILES.values()))

    for max_bytes in (0, 5, 20, 5000, all_bytes - 1):
        assert "is larger than allowed" in refusal_of(uri, tmp_path / "back", max_bytes=max_bytes)
    fetch_folder(uri, tmp_path / "back", max_bytes=all_bytes, max_files=3)


@pytest.mark.parametrize("name", [".hidden", "with space", "~root", "a\nb", "x" * 101, "a\\..\\b", "C:"])
def test_odd_names_are_refused(folder: Path, uri: str, tmp_path: Path, name: str) -> None:
    publish_folder(folder, uri)
    put(uri, name, b"content")

    assert "a name must be of letters, digits" in refusal_of(uri, tmp_path / "back")


def test_folders_in_a_place_are_refused(folder: Path, uri: str, tmp_path: Path) -> None:
    publish_folder(folder, uri)
    put(f"{uri}/inner", "file", b"content")

    assert "'inner', which is no plain file" in refusal_of(uri, tmp_path / "back")


def test_links_to_what_is_not_in_the_place_are_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    (folder / "link").symlink_to(tmp_path / "secret")

    assert "'link', which is no plain file" in refusal_of(str(folder), tmp_path / "back")


@pytest.mark.parametrize("key", ["../../evil", "..", "inner/../../evil", "/absolute", "//evil"])
def test_a_store_whose_keys_climb_brings_nothing_but_plain_files(folder: Path, tmp_path: Path, key: str) -> None:
    root = uuid.uuid4().hex
    publish_folder(folder, f"memory://{root}/copy")
    store = fsspec.filesystem("memory").store
    store[f"/{root}/copy/{key}"] = store[f"/{root}/copy/state.json"]
    deep = tmp_path / "deep"
    back = deep / "inside" / "back"

    with contextlib.suppress(LocationError):  # what lies deeper than the folder need not even be noticed
        fetch_folder(f"memory://{root}/copy", back, **ROOM)

    assert set(tmp_path.iterdir()) <= {folder, deep}
    assert set(deep.rglob("*")) <= {deep / "inside", back, *(back / name for name in FILES)}


def test_a_folder_that_is_not_empty_is_not_fetched_into(folder: Path, uri: str, tmp_path: Path) -> None:
    publish_folder(folder, uri)
    (tmp_path / "precious").write_bytes(b"content")
    back = tmp_path / "back"
    back.mkdir()
    (back / "state.json").symlink_to(tmp_path / "precious")

    with pytest.raises(LocationError, match="back is not empty"):
        fetch_folder(uri, back, **ROOM)

    assert (tmp_path / "precious").read_bytes() == b"content"


# Schemes


@pytest.mark.parametrize(
    ("scheme", "extra", "plugin"), [("s3", "s3", "s3fs"), ("gs", "gcs", "gcsfs"), ("gcs", "gcs", "gcsfs")]
)
def test_a_missing_extra_is_named(folder: Path, tmp_path: Path, scheme: str, extra: str, plugin: str) -> None:
    program = f"""
import sys
from pathlib import Path
sys.modules[{plugin!r}] = None  # as if it were not installed
from hookloop.errors import MissingExtraError
from hookloop.storage.locations import fetch_folder, publish_folder

for attempt in (
    lambda: publish_folder(Path({str(folder)!r}), "{scheme}://bucket/run"),
    lambda: fetch_folder("{scheme}://bucket/run", Path({str(tmp_path / "back")!r}), max_bytes=1, max_files=1),
):
    try:
        attempt()
    except MissingExtraError as error:
        print(error)
"""
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    expected = str(MissingExtraError(f"{scheme}://bucket/run", extra))
    assert finished.stdout.splitlines() == [expected, expected]


def test_an_unknown_scheme_is_an_error_that_names_it(folder: Path) -> None:
    with pytest.raises(LocationError, match=r"nope://place cannot be reached: .*'nope'"):
        publish_folder(folder, "nope://place")


def test_passwords_do_not_appear_in_errors(folder: Path) -> None:
    with pytest.raises(LocationError) as caught:
        publish_folder(folder, "nope://user:secret@host/place")

    assert "nope://...@host/place" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_local_path_does_not_cost_the_import_of_every_file_system(folder: Path, tmp_path: Path) -> None:
    program = f"""
import sys
from pathlib import Path
from hookloop.storage.locations import publish_folder
publish_folder(Path({str(folder)!r}), {str(tmp_path / "copy")!r})
print("upath" in sys.modules, "torch" in sys.modules)
"""
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert finished.stdout.split() == ["False", "False"]
