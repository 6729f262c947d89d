"""Atomic writes: after a crash at any instant a file is the old one or the new one, never a part."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file: to a temporary one beside it, flushed to the disk, then renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    _flush_folder(path.parent)


def write_json(path: Path, content: Any) -> None:
    """Write strict JSON."""
    write_bytes(path, (json.dumps(content, indent=2, allow_nan=False) + "\n").encode())


def _flush_folder(folder: Path) -> None:
    """Make a rename durable: the name lives in the folder, which is flushed apart from the file."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
