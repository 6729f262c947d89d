"""Atomic writes: after a crash at any instant a file is the old one or the new one, never a part."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from hookloop.storage.disk import flush_descriptor, flush_folder


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file: to a temporary one beside it, flushed to the disk, then renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            flush_descriptor(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    flush_folder(path.parent)


def remove_leftovers(path: Path) -> None:
    """Remove what killed processes left of their writes of this file; none may be writing it now."""
    for leftover in leftovers(path):
        leftover.unlink(missing_ok=True)


def leftovers(path: Path) -> list[Path]:
    """Return the temporary files of writes of this file that are under way, or never ended."""
    return list(path.parent.glob(f".{path.name}.*"))


def write_json(path: Path, content: Any) -> None:
    """Write strict JSON."""
    write_bytes(path, (json.dumps(content, indent=2, allow_nan=False) + "\n").encode())
