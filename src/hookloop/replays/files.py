"""Replays as files: packed when written, checked to the last byte when read, never executed."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hookloop.errors import ReplayError
from hookloop.replays.header import (
    ITEM_BYTES,
    MOST_BYTES,
    MOST_HEADER_BYTES,
    PRELUDE,
    Block,
    Header,
    decode_header,
    encode_header,
    header_length,
)
from hookloop.storage.atomic import write_bytes

Array = np.ndarray[Any, Any]

LEVEL = 6
MOST_FILE_BYTES = 64_000_000


@dataclass(frozen=True, slots=True)
class Replay:
    """One recorded episode.

    ``arrays`` has ``rewards`` [T], and as far as they were recorded ``observations`` [T or T + 1, ...] (with the part's
    name after a slash where an observation has several), ``actions``, ``values``, ``probabilities`` [T, A],
    ``chosen_probabilities``, ``frames`` [T, H, W, 3] and ``boards`` [T, L], texts in UTF-8 filled up with zeros.
    """

    about: Mapping[str, Any]
    arrays: Mapping[str, Array]

    @property
    def steps(self) -> int:
        """How many steps are recorded."""
        return len(self.arrays["rewards"])

    def board(self, step: int) -> str | None:
        """Return what the environment drew as text before a step."""
        if "boards" not in self.arrays:
            return None
        return bytes(self.arrays["boards"][step]).rstrip(b"\0").decode(errors="replace")


def encode_replay(replay: Replay, *, most_bytes: int = MOST_FILE_BYTES) -> bytes:
    """Return the content of a file."""
    unpacked = sum(array.nbytes for array in replay.arrays.values())
    if unpacked > MOST_BYTES:
        raise ReplayError(f"The episode has {unpacked} bytes, and {MOST_BYTES} are the most; record it without frames.")
    blocks: list[Block] = []
    packed: list[bytes] = []
    for name, array in replay.arrays.items():
        block, content = _pack(name, array)
        blocks.append(block)
        packed.append(content)
    content = b"".join((encode_header(Header(dict(replay.about), tuple(blocks))), *packed))
    if len(content) > most_bytes:
        raise ReplayError(
            f"The episode is a replay of {len(content)} bytes, and {most_bytes} are the most; record it without frames."
        )
    return content


def decode_replay(content: bytes, what: str = "the replay") -> Replay:
    """Read the content of a file."""
    header = decode_header(content, what)
    begin = PRELUDE.size + header_length(content, what)
    if len(content) != begin + header.stored:
        raise ReplayError(f"{what} has {len(content)} bytes, and should have {begin + header.stored}: it is cut off.")
    arrays: dict[str, Array] = {}
    for block in header.blocks:
        arrays[block.name] = _unpack(block, content[begin : begin + block.stored], what)
        begin += block.stored
    return Replay(header.about, arrays)


def write_replay(path: Path, replay: Replay, *, most_bytes: int = MOST_FILE_BYTES) -> None:
    """Write a replay, whole or not at all."""
    write_bytes(path, encode_replay(replay, most_bytes=most_bytes))


def read_replay(path: Path) -> Replay:
    """Read a replay."""
    return decode_replay(_content(path, MOST_BYTES + MOST_HEADER_BYTES), str(path))


def read_about(path: Path) -> dict[str, Any]:
    """Read what a replay says of itself, its blocks unread."""
    return decode_header(_content(path, PRELUDE.size + MOST_HEADER_BYTES, is_head=True), str(path)).about


def _content(path: Path, most: int, *, is_head: bool = False) -> bytes:
    try:
        if not path.is_file():
            raise ReplayError(f"There is no replay at {path}.")
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise ReplayError(f"{path} cannot be read: {error}.") from error
    if len(content) > most and not is_head:
        raise ReplayError(f"{path} is larger than {most} bytes, which no replay is.")
    return content[:most]


def _pack(name: str, array: Array) -> tuple[Block, bytes]:
    array = np.ascontiguousarray(array)
    if array.dtype.name not in ITEM_BYTES or array.ndim < 1:
        raise ReplayError(
            f"A replay holds arrays of numbers, one row per step; {name!r} is {array.dtype}{array.shape}."
        )
    raw = array.astype(array.dtype.newbyteorder("<"), copy=False)
    # Pictures and texts hardly change from step to step; floats change in every bit.
    is_delta = array.dtype.itemsize == 1 and len(array) > 1
    if is_delta:
        rows = raw.view(np.uint8).reshape(len(raw), -1)
        raw = np.concatenate([rows[:1], rows[1:] - rows[:-1]])
    stored = zlib.compress(raw.tobytes(), LEVEL)
    encoding = "delta" if is_delta else "plain"
    return Block(name, array.dtype.name, tuple(array.shape), encoding, len(stored), zlib.crc32(stored)), stored


def _unpack(block: Block, stored: bytes, what: str) -> Array:
    if zlib.crc32(stored) != block.crc32:
        raise ReplayError(f"{what} is damaged: its {block.name!r} are not what was written.")
    unpacking = zlib.decompressobj()
    try:
        raw = unpacking.decompress(stored, block.bytes + 1)  # whatever it unpacks to, no more than it says
    except zlib.error as error:
        raise ReplayError(f"{what} is damaged: its {block.name!r} cannot be unpacked ({error}).") from error
    if len(raw) != block.bytes or not unpacking.eof or unpacking.unused_data:
        raise ReplayError(f"{what} has {block.name!r} that are not as long as it says.")
    if block.encoding == "delta" and block.bytes:
        rows = np.frombuffer(raw, np.uint8).reshape(block.shape[0], -1)
        raw = np.add.accumulate(rows, axis=0, dtype=np.uint8).tobytes()
    if block.dtype == "bool" and raw and max(raw) > 1:
        raise ReplayError(f"{what} has {block.name!r} that are neither true nor false.")
    kind = np.dtype(block.dtype)
    return np.frombuffer(raw, kind.newbyteorder("<")).astype(kind, copy=False).reshape(block.shape)
