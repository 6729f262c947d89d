"""What W&B has on the disk of a run that is tracked offline: a log of records, in blocks, as LevelDB writes them.

W&B keeps what it is told in memory for a while, and a kill takes that away; only its files say what it has.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Generator
from glob import escape
from importlib import import_module
from pathlib import Path
from typing import Any

HEADER_BYTES = 7
BLOCK_BYTES = 32_768
_CHUNK_HEAD = struct.Struct("<IHB")
_WHOLE, _FIRST, _LAST = 1, 2, 4


def offline_rows(folder: Path, run_id: str) -> Generator[dict[str, str]]:
    """Return the rows of a run, those of each process in order: texts of JSON by key."""
    messages: Any = import_module("wandb.proto.wandb_internal_pb2")
    name = escape(run_id)
    for path in sorted(folder.glob(f"wandb/offline-run-*-{name}*/run-{name}.wandb")):
        for content in _records(path.read_bytes()):
            record = messages.Record()
            record.ParseFromString(content)
            if record.HasField("history"):
                yield {item.key or ".".join(item.nested_key): item.value_json for item in record.history.item}


def is_complete(path: Path) -> bool:
    """Say whether a log has the record that W&B writes last; it is among the last blocks."""
    messages: Any = import_module("wandb.proto.wandb_internal_pb2")
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        begin = max(0, size // BLOCK_BYTES - 1) * BLOCK_BYTES
        file.seek(begin)
        tail = file.read()
    return any(messages.Record.FromString(each).HasField("exit") for each in _records(tail, HEADER_BYTES * (not begin)))


def _records(data: bytes, position: int = HEADER_BYTES) -> Generator[bytes]:
    """Return the whole records of a log; it may have no end, and begin in the middle of one."""
    parts: bytes | None = None
    while True:
        left = BLOCK_BYTES - position % BLOCK_BYTES
        if left < _CHUNK_HEAD.size:
            position += left
        begin = position + _CHUNK_HEAD.size
        if begin > len(data):
            return
        _, size, kind = _CHUNK_HEAD.unpack_from(data, position)
        if kind == 0 or begin + size > len(data):
            return
        if kind in (_WHOLE, _FIRST):
            parts = b""
        position = begin + size
        if parts is not None:
            parts += data[begin:position]
            if kind in (_WHOLE, _LAST):
                yield parts
                parts = None
