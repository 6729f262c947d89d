"""Folders that go to and come from other places: an object store, a server, another disk.

A copy is whole once its ``MANIFEST.json`` is there, which is therefore written last and read first. Here it is only
a file among files: what it says about the others is checked by those who understand it.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from hookloop.errors import LocationError, MissingExtraError
from hookloop.storage.atomic import write_bytes
from hookloop.storage.disk import LocalDisk, make_folders

if TYPE_CHECKING:
    from upath import UPath

    Place: TypeAlias = Path | UPath

MANIFEST_NAME = "MANIFEST.json"

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_NAME_RULE = "letters, digits, '.', '_' and '-', at most 100, the first a letter or digit"
_CHUNK_BYTES = 1 << 20
_MOST_MANIFEST_BYTES = 64 << 20
_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs"}
# Where a folder is but a part of its files' names. To "make" one there would make a bucket out of a misspelt name.
_WITHOUT_FOLDERS = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "hf"}
# What the plug-ins raise that is no OSError: wrong credentials, no connection.
_PLUGIN_ERRORS = (
    ("botocore.exceptions", "BotoCoreError"),
    ("google.auth.exceptions", "GoogleAuthError"),
    ("gcsfs.retry", "HttpError"),
    ("aiohttp", "ClientError"),
)


def is_uri(text: str) -> bool:
    """Return whether a text names a place by a scheme, as ``s3://bucket/folder`` does, and not by a local path."""
    return _SCHEME.match(text) is not None


def publish_folder(folder: Path, uri: str) -> None:
    """Copy the files of a folder to a place, its ``MANIFEST.json`` last.

    A copy is immutable: one that is whole and has the same manifest is left as it is, another is refused.
    What an interrupted copy left is written over.
    """
    names = _publishable_names(folder)
    manifest = (folder / MANIFEST_NAME).read_bytes()
    place = _place(uri)
    published = _read_manifest(place, uri, max_bytes=_MOST_MANIFEST_BYTES)
    if published == manifest:
        return
    if published is not None:
        raise LocationError(
            f"{_shown(uri)} already has a {MANIFEST_NAME}, and not that of {folder}: what is published never changes. "
            "Publish to another place, or remove what is there."
        )
    with _speaking_to(uri):
        if isinstance(place, Path):
            _copy_to_local(folder, place, names)
        else:
            _copy_to_remote(folder, place, names)


def fetch_folder(uri: str, folder: Path, *, max_bytes: int, max_files: int) -> None:
    """Copy the files of a place into a local folder, made if need be, its ``MANIFEST.json`` last.

    What comes from elsewhere is not trusted: only plain files directly inside are taken, under names that cannot
    lead out of the folder, and no more of them than allowed. After an error none of them is left.

    Args:
        max_bytes: The most that all files together may have, counted as they arrive.
        max_files: The most files there may be, the manifest among them.
    """
    place = _place(uri)
    manifest = _read_manifest(place, uri, max_bytes=max_bytes)
    if manifest is None:
        raise LocationError(
            f"{_shown(uri)} has no {MANIFEST_NAME}, so it is no whole copy of a folder. "
            "Look whether the address is right and whether publishing was finished."
        )
    names = _fetchable_names(place, uri, max_files)
    disk = LocalDisk()
    make_folders(disk, folder)
    if disk.names(folder):
        raise LocationError(f"{folder} is not empty: {_shown(uri)} is fetched into a new or an empty folder alone.")
    spare_bytes = max_bytes - len(manifest)
    try:
        for name in names:
            disk.write(folder / name, _read_chunks(place / name, uri, spare_bytes))
            disk.flush(folder / name)
            spare_bytes -= (folder / name).stat().st_size
        disk.flush_folder(folder)
        write_bytes(folder / MANIFEST_NAME, manifest)
    except BaseException:
        for name in disk.names(folder):
            disk.remove(folder / name)
        raise


def _publishable_names(folder: Path) -> list[str]:
    """Return the names of a folder's files but the manifest's; what could not be fetched again is refused."""
    if not (folder / MANIFEST_NAME).exists():
        raise LocationError(f"{folder} has no {MANIFEST_NAME}, and without one a copy of it would never be whole.")
    listing = dict(_listing(folder))
    for name, is_plain in listing.items():
        _require_plain(name, is_plain, str(folder))
    return sorted(listing.keys() - {MANIFEST_NAME})


def _fetchable_names(place: Place, uri: str, max_files: int) -> list[str]:
    """Return the names of a place's files but the manifest's, each of them checked."""
    names = {MANIFEST_NAME}
    with _speaking_to(uri):
        for name, is_plain in _listing(place):
            _require_plain(name, is_plain, _shown(uri))
            names.add(name)
            if len(names) > max_files:
                raise LocationError(f"{_shown(uri)} has more than the {max_files} files that are allowed.")
    return sorted(names - {MANIFEST_NAME})


def _listing(place: Place) -> Iterator[tuple[str, bool]]:
    """Yield what is directly inside a place: its name, and whether it is a plain file."""
    if isinstance(place, Path):
        for path in place.iterdir():
            yield path.name, path.is_file() and not path.is_symlink()
        return
    # The file system's own listing: paths made of it would have their names put right, the wrong ones too.
    prefix = place.path.rstrip("/") + "/"
    for entry in place.fs.ls(place.path, detail=True):
        name = entry["name"].removeprefix(prefix)
        if name:  # an object store may list a marker of the folder itself among its files
            yield name, entry["type"] == "file" and not entry.get("islink")


def _require_plain(name: str, is_plain: bool, where: str) -> None:
    if not is_plain:
        raise LocationError(f"{where} has {name[:200]!r}, which is no plain file; folders and links are not copied.")
    if not _FILE_NAME.fullmatch(name):
        raise LocationError(f"{where} has a file called {name[:200]!r}; a name must be of {_NAME_RULE}.")


def _copy_to_local(folder: Path, place: Path, names: list[str]) -> None:
    disk = LocalDisk()
    make_folders(disk, place)
    for name in names:
        disk.remove(place / name)  # what an interrupted copy left
        with (folder / name).open("rb") as source:
            disk.write(place / name, _chunks(source))
        disk.flush(place / name)
    disk.flush_folder(place)
    write_bytes(place / MANIFEST_NAME, (folder / MANIFEST_NAME).read_bytes())


def _copy_to_remote(folder: Path, place: UPath, names: list[str]) -> None:
    if place.protocol not in _WITHOUT_FOLDERS:
        place.mkdir(parents=True, exist_ok=True)
    for name in [*names, MANIFEST_NAME]:
        with (folder / name).open("rb") as source, (place / name).open("wb") as target:
            for chunk in _chunks(source):
                target.write(chunk)


def _read_manifest(place: Place, uri: str, *, max_bytes: int) -> bytes | None:
    """Return the manifest of a place, or None if there is none."""
    try:
        return b"".join(_read_chunks(place / MANIFEST_NAME, uri, max_bytes))
    except LocationError as error:
        if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
            return None
        raise


def _read_chunks(path: Place, uri: str, max_bytes: int) -> Iterator[bytes]:
    """Yield a file's content, and stop with an error once there is more of it than allowed."""
    spare_bytes = max_bytes
    with _speaking_to(uri), path.open("rb") as file:
        for chunk in _chunks(file):
            spare_bytes -= len(chunk)
            if spare_bytes < 0:
                raise LocationError(f"{_shown(uri)} is larger than allowed: {path.name} exceeds what is left of it.")
            yield chunk


def _chunks(file: IO[Any]) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK_BYTES):
        yield chunk


def _place(uri: str) -> Place:
    """Return where a URI or a local path points to; the disk of this machine is a plain path either way."""
    if not is_uri(uri):
        return Path(uri)
    from upath import UPath  # a quarter of a second, which only those pay who leave the disk

    with _speaking_to(uri):
        try:
            place = UPath(uri)
            filesystem = place.fs
        except ValueError as error:
            raise LocationError(f"{_shown(uri)} cannot be reached: {error}.") from error
        if place.protocol in ("file", "local"):
            return Path(place.path)
        filesystem.invalidate_cache()  # another process may have published since this one looked
        return place


@contextlib.contextmanager
def _speaking_to(uri: str) -> Iterator[None]:
    """Give the errors of a place's plug-in one type, and say which place it was."""
    try:
        yield
    except (LocationError, MissingExtraError):
        raise
    except ImportError as error:
        scheme = uri.partition("://")[0].lower()
        if scheme in _EXTRAS:
            raise MissingExtraError(_shown(uri), _EXTRAS[scheme]) from error
        raise LocationError(f"{_shown(uri)} needs a package that is not installed: {error}") from error
    except (OSError, *_plugin_errors()) as error:
        located = LocationError(f"{_shown(uri)} cannot be used: {type(error).__name__}: {error}")
        located.errno = getattr(error, "errno", None)
        raise located from error


def _plugin_errors() -> tuple[type[Exception], ...]:
    return tuple(getattr(sys.modules[module], name) for module, name in _PLUGIN_ERRORS if module in sys.modules)


def _shown(uri: str) -> str:
    """Return a URI as it may be shown: without the user and password it may hold."""
    return re.sub(r"://[^/@]*@", "://...@", uri)
