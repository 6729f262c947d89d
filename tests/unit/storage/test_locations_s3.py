"""Publishing to and fetching from an object store: a real client and a local server that speaks S3.

Runs where both are installed: ``pip install s3fs 'moto[server]'``.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from hookloop.errors import LocationError
from hookloop.storage.locations import fetch_folder, publish_folder

s3fs = pytest.importorskip("s3fs")
moto_server = pytest.importorskip("moto.server")

# The client closes its connections as the interpreter ends, with warnings that are not ours to mend.
pytestmark = pytest.mark.filterwarnings("default")

FILES = {"MANIFEST.json": b'{"files": 2}', "model.safetensors": b"weights" * 1_000_000, "state.json": b"{}"}


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "anyone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "anything")
    s3fs.S3FileSystem.clear_instance_cache()
    name = f"runs-{uuid.uuid4().hex}"
    s3fs.S3FileSystem().mkdir(name)
    yield f"s3://{name}"
    server.stop()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    for name, content in FILES.items():
        (tmp_path / "folder" / name).write_bytes(content)
    return tmp_path / "folder"


def test_a_folder_goes_to_an_object_store_and_comes_back_the_same(bucket: str, folder: Path, tmp_path: Path) -> None:
    publish_folder(folder, f"{bucket}/one/copy")
    publish_folder(folder, f"{bucket}/one/copy")
    fetch_folder(f"{bucket}/one/copy", tmp_path / "back", max_bytes=10_000_000, max_files=3)

    assert {path.name: path.read_bytes() for path in (tmp_path / "back").iterdir()} == FILES


def test_what_is_published_never_changes(bucket: str, folder: Path) -> None:
    publish_folder(folder, f"{bucket}/one/copy")
    (folder / "MANIFEST.json").write_bytes(b"another")

    with pytest.raises(LocationError, match=r"already has a MANIFEST.json"):
        publish_folder(folder, f"{bucket}/one/copy")


def test_a_copy_made_by_another_process_is_seen(bucket: str, folder: Path, tmp_path: Path) -> None:
    uri = f"{bucket}/one/copy"
    with pytest.raises(LocationError, match=r"has no MANIFEST.json"):
        fetch_folder(uri, tmp_path / "back", max_bytes=10_000_000, max_files=3)
    another_process = s3fs.S3FileSystem(skip_instance_cache=True)
    for name, content in FILES.items():
        another_process.pipe(f"{uri}/{name}", content)

    fetch_folder(uri, tmp_path / "back", max_bytes=10_000_000, max_files=3)

    assert len(list((tmp_path / "back").iterdir())) == 3


def test_a_marker_of_the_folder_itself_is_no_file(bucket: str, folder: Path, tmp_path: Path) -> None:
    publish_folder(folder, f"{bucket}/one/copy")
    s3fs.S3FileSystem().call_s3("put_object", Bucket=bucket.removeprefix("s3://"), Key="one/copy/", Body=b"")

    fetch_folder(f"{bucket}/one/copy", tmp_path / "back", max_bytes=10_000_000, max_files=3)

    assert len(list((tmp_path / "back").iterdir())) == 3


@pytest.mark.parametrize("key", ["../evil", "a/../../evil", "inner/file", "/absolute", ".."])
def test_keys_that_climb_bring_nothing_but_plain_files(bucket: str, folder: Path, tmp_path: Path, key: str) -> None:
    publish_folder(folder, f"{bucket}/one/copy")
    s3fs.S3FileSystem().call_s3("put_object", Bucket=bucket.removeprefix("s3://"), Key=f"one/copy/{key}", Body=b"evil")
    back = tmp_path / "deep" / "back"

    with contextlib.suppress(LocationError):  # what lies deeper than the folder need not even be noticed
        fetch_folder(f"{bucket}/one/copy", back, max_bytes=10_000_000, max_files=10)

    assert set(tmp_path.iterdir()) <= {folder, tmp_path / "deep"}
    assert set(back.parent.rglob("*")) <= {back, *(back / name for name in FILES)}


def test_a_bucket_that_does_not_exist_is_an_error_and_is_not_made(bucket: str, folder: Path) -> None:
    with pytest.raises(LocationError, match="s3://misspelt/copy cannot be used"):
        publish_folder(folder, "s3://misspelt/copy")

    assert not s3fs.S3FileSystem().exists("misspelt")


def test_a_store_that_cannot_be_reached_is_an_error_of_the_place(
    bucket: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    s3fs.S3FileSystem.clear_instance_cache()

    with pytest.raises(LocationError, match="/copy cannot be used"):
        publish_folder(folder, f"{bucket}/copy")


def test_missing_credentials_are_an_error_of_the_place(
    bucket: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    s3fs.S3FileSystem.clear_instance_cache()

    with pytest.raises(LocationError, match="/copy cannot be used"):
        publish_folder(folder, f"{bucket}/copy")
