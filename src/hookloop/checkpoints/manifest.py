"""The manifest: what a checkpoint is, what it promises, and the hash of every file in it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

from hookloop.checkpoints.strict_json import parse_json
from hookloop.errors import DamagedCheckpointError

Plain = Any
Kind = Literal["periodic", "final", "interrupted"]

MANIFEST = "MANIFEST.json"
FORMAT = "hookloop-checkpoint"
FORMAT_VERSION = 1
MAX_MANIFEST_BYTES = 4_000_000
MAX_FILES = 100
MAX_STEP = 10**12 - 1
NAME = re.compile(r"step-(\d{12})(-final)?", re.ASCII)
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
        body = parse_json(content, what)
        if not isinstance(body, dict):
            raise DamagedCheckpointError(f"{what} must be a mapping, got a {type(body).__name__}.")
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
        _require_meaning(body, what)
        files = {name: _entry(name, entry, what) for name, entry in body["files"].items()}
        read = cls(**{**body, "files": files})
        if read.encode() != content:  # two texts can mean the same, and only one of them was written
            raise DamagedCheckpointError(f"{what} was changed after it was written: it is not spelt as it should be.")
        return read


def name_of(step: int, *, is_final: bool = False) -> str:
    """Return the name of the checkpoint at a step; names sort as the steps do."""
    return f"step-{step:012d}{'-final' if is_final else ''}"


def _digest(body: Mapping[str, Plain]) -> str:
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _is_text(value: Plain) -> bool:
    return isinstance(value, str) and value.isprintable()  # these are shown, and a terminal obeys what it is shown


def _is_number(value: Plain) -> bool:
    return type(value) is float or (type(value) is int and abs(value) < 1 << 63)


def _are_numbers(value: Plain) -> bool:
    return isinstance(value, dict) and all(map(_is_number, value.values()))


_MEANINGFUL: Mapping[str, Callable[[Plain], bool]] = {
    "format_version": lambda value: type(value) is int,
    "run_id": _is_text,
    "step": lambda value: type(value) is int and 0 <= value <= MAX_STEP,
    "clock": _is_text,
    "clocks": _are_numbers,
    "attempt": _is_number,
    "parent": lambda value: value is None or _is_text(value),
    "kind": lambda value: value in get_args(Kind),
    "created": _is_text,
    "exactness": _is_text,
    "inexact_because": lambda value: isinstance(value, str),
    "environment": lambda value: isinstance(value, dict),
    "config_sha256": _is_text,
    "metrics": _are_numbers,
    "metadata": lambda value: isinstance(value, dict),
    "files": lambda value: isinstance(value, dict) and len(value) <= MAX_FILES,
}


def _require_meaning(body: Mapping[str, Plain], what: str) -> None:
    for name, is_meaningful in _MEANINGFUL.items():
        if not is_meaningful(body[name]):
            raise DamagedCheckpointError(f"{what} has {name}={body[name]!r:.100}, which means nothing here.")
    expected = name_of(body["step"], is_final=body["kind"] == "final")
    if body["name"] != expected:
        raise DamagedCheckpointError(f"{what} has the name {body['name']!r:.100}, which should be {expected}.")


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
