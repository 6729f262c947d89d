"""Atomic writes: after a crash at any instant a file is the old one or the new one, never a part."""

from __future__ import annotations

import json
import os
import secrets
import tempfile
from pathlib import Path
from typing import Any

from hookloop.storage.disk import flush_descriptor, flush_folder


def write_bytes(path: Path, content: bytes, *, is_private: bool = True, is_durable: bool = True) -> None:
    """Write a file: to a temporary one beside it, flushed to the disk, then renamed.

    Args:
        path: The file.
        content: What it holds from now on.
        is_private: Only its owner may read it; otherwise whoever the process's mask allows, as with any file.
        is_durable: Wait until it is on the disk; a file that is soon written again need not survive a power cut.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if is_private:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    else:
        temporary = str(path.with_name(f".{path.name}.{secrets.token_hex(8)}"))
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            if is_durable:
                file.flush()
                flush_descriptor(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    if is_durable:
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
