"""The manifest: what a checkpoint is, what it promises, and the hash of every file in it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, cast

from hookloop.errors import DamagedCheckpointError

Plain = Any
Kind = Literal["periodic", "final", "interrupted"]

MANIFEST = "MANIFEST.json"
FORMAT = "hookloop-checkpoint"
FORMAT_VERSION = 1
MAX_MANIFEST_BYTES = 4_000_000
MAX_FILES = 100
FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class FileEntry:
    """What one file must be."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything about a checkpoint that can be known without loading it."""

    run_id: str
    name: str
    step: int
    """The reading of ``clock``: what the run counts its progress in."""
    clock: str
    clocks: dict[str, float]
    attempt: int
    parent: str | None
    """The checkpoint before it in the history of these weights."""
    kind: Kind
    created: str
    exactness: str
    inexact_because: str
    environment: dict[str, Plain]
    """What the bits depend on besides the state: versions, threads, machine."""
    config_sha256: str
    metrics: dict[str, float]
    metadata: dict[str, Plain]
    files: dict[str, FileEntry]
    format: str = field(default=FORMAT)
    format_version: int = field(default=FORMAT_VERSION)

    @property
    def epochs(self) -> int:
        """Completed epochs."""
        return int(self.clocks.get("epochs", 0))

    @property
    def total_bytes(self) -> int:
        """The size of all files."""
        return sum(entry.bytes for entry in self.files.values())

    def encode(self) -> bytes:
        """Return the file's content; its last field is the hash of everything above."""
        body = asdict(self)
        return (json.dumps({**body, "sha256": _digest(body)}, indent=1, allow_nan=False) + "\n").encode()

    @property
    def sha256(self) -> str:
        """The hash that stands for the whole checkpoint, as it covers the hashes of all files."""
        return _digest(asdict(self))

    @classmethod
    def decode(cls, content: bytes, what: str) -> Manifest:
        """Read a manifest; nothing in it is believed before it is checked."""
        body = _parse(content, what)
        claimed = body.pop("sha256", None)
        if body.get("format") != FORMAT or body.get("format_version") != FORMAT_VERSION:
            raise DamagedCheckpointError(
                f"{what} is {body.get('format')!r} version {body.get('format_version')!r}; "
                f"this hookloop reads {FORMAT!r} version {FORMAT_VERSION}."
            )
        if claimed != _digest(body):
            raise DamagedCheckpointError(f"{what} was changed after it was written: its hash does not fit its content.")
        unknown = set(body) ^ {each.name for each in fields(cls)}
        if unknown:
            raise DamagedCheckpointError(f"{what} has the wrong fields: {', '.join(sorted(unknown))}.")
        _require_types(body, what)
        files = {name: _entry(name, entry, what) for name, entry in body["files"].items()}
        return cls(**{**body, "files": files})


def _parse(content: bytes, what: str) -> dict[str, Plain]:
    try:
        read = json.loads(content, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise DamagedCheckpointError(f"{what} is no strict JSON: {error}.") from error
    if not isinstance(read, dict):
        raise DamagedCheckpointError(f"{what} must be a mapping, got a {type(read).__name__}.")
    return cast("dict[str, Plain]", read)


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


def _digest(body: Mapping[str, Plain]) -> str:
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "run_id": str, "name": str, "step": int, "clock": str, "clocks": dict, "attempt": int, "kind": str, "created": str,
    "exactness": str, "inexact_because": str, "environment": dict, "config_sha256": str, "metrics": dict,
    "metadata": dict, "files": dict, "parent": (str, type(None)),
}  # fmt: skip


def _require_types(body: Mapping[str, Plain], what: str) -> None:
    for name, expected in _TYPES.items():
        if not isinstance(body[name], expected):
            raise DamagedCheckpointError(f"{what} has {name}={body[name]!r:.100}, which is of the wrong kind.")
    if len(body["files"]) > MAX_FILES:
        raise DamagedCheckpointError(f"{what} lists {len(body['files'])} files; at most {MAX_FILES} are allowed.")


def _entry(name: str, entry: Plain, what: str) -> FileEntry:
    is_sound = (
        FILE_NAME.fullmatch(name) is not None
        and name != MANIFEST
        and isinstance(entry, dict)
        and set(entry) == {"bytes", "sha256"}
        and type(entry["bytes"]) is int
        and entry["bytes"] >= 0
        and isinstance(entry["sha256"], str)
        and _SHA256.fullmatch(entry["sha256"]) is not None
    )
    if not is_sound:
        raise DamagedCheckpointError(f"{what} lists the file {name!r:.120} in a way that is not understood.")
    return FileEntry(**entry)
