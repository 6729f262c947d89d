"""What W&B has on the disk of a run that is tracked offline: a log of records, in blocks, as LevelDB writes them.

W&B keeps what it is told in memory for a while, and a kill takes that away; only its files say what it has.
"""

from __future__ import annotations

import struct
from collections.abc import Generator
from importlib import import_module
from pathlib import Path
from typing import Any

HEADER_BYTES = 7
BLOCK_BYTES = 32_768
_CHUNK_HEAD = struct.Struct("<IHB")
_WHOLE, _LAST = 1, 4


def offline_rows(folder: Path, run_id: str) -> Generator[dict[str, str]]:
    """Return the rows of a run, those of each process in order: texts of JSON by key."""
    messages: Any = import_module("wandb.proto.wandb_internal_pb2")
    for path in sorted(folder.glob(f"wandb/offline-run-*-{run_id}*/run-{run_id}.wandb")):
        for content in _records(path.read_bytes()):
            record = messages.Record()
            record.ParseFromString(content)
            if record.HasField("history"):
                yield {item.key or ".".join(item.nested_key): item.value_json for item in record.history.item}


def _records(data: bytes) -> Generator[bytes]:
    """Return the whole records of a log; it may have no end."""
    position, parts = HEADER_BYTES, b""
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
        parts += data[begin : begin + size]
        position = begin + size
        if kind in (_WHOLE, _LAST):
            yield parts
            parts = b""
