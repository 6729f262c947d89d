"""The head of a replay file: what the episode was, and which blocks follow. Checked before a byte of them is read.

::

    0   8 bytes   HLREPLAY
    8   uint32    the version of the format, 1
    12  uint32    the length of the header
    16  uint32    the CRC-32 of the header
    20  header    strict JSON in UTF-8: {"about": {...}, "blocks": [...]}
    ..  blocks    one after the other, each as long as the header says; the file ends with the last

Numbers are little-endian. A block is one array [T, ...], compressed with zlib. With the encoding ``delta`` each row
but the first holds, byte by byte and modulo 256, what differs from the row before.
"""

from __future__ import annotations

import json
import math
import re
import struct
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from hookloop.errors import ReplayError

MAGIC = b"HLREPLAY"
VERSION = 1
PRELUDE = struct.Struct("<8sIII")
MOST_HEADER_BYTES = 1_000_000
MOST_BLOCKS = 64
MOST_AXES = 8
MOST_STEPS = 10_000_000
MOST_BYTES = 512_000_000
"""Of all blocks together, unpacked."""

ITEM_BYTES: Mapping[str, int] = {
    "bool": 1, "uint8": 1, "int8": 1, "uint16": 2, "int16": 2, "uint32": 4, "int32": 4, "uint64": 8, "int64": 8,
    "float16": 2, "float32": 4, "float64": 8,
}  # fmt: skip
ENCODINGS = ("plain", "delta")
_NAME = re.compile(r"[a-z][\w./-]{0,99}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Block:
    """One array of a replay, as it lies in the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    encoding: str
    stored: int
    """Its length in the file, in bytes."""
    crc32: int
    """Of those bytes."""

    @property
    def bytes(self) -> int:
        """Its length unpacked."""
        return math.prod(self.shape) * ITEM_BYTES[self.dtype]


@dataclass(frozen=True, slots=True)
class Header:
    """What a replay says of itself."""

    about: dict[str, Any]
    blocks: tuple[Block, ...]

    @property
    def stored(self) -> int:
        """The length of all blocks in the file."""
        return sum(block.stored for block in self.blocks)


def encode_header(header: Header) -> bytes:
    """Return the beginning of a file, up to the first block."""
    body = {"about": header.about, "blocks": [asdict(block) for block in header.blocks]}
    try:
        text = json.dumps(body, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise ReplayError(f"A replay says of itself what strict JSON can hold, and this is more: {error}.") from error
    content = PRELUDE.pack(MAGIC, VERSION, len(text), zlib.crc32(text)) + text
    decode_header(content, "the replay")  # what could be written and not be read again is refused
    return content


def decode_header(content: bytes, what: str) -> Header:
    """Read the beginning of a file, which may go on after it; nothing in it is believed before it is checked."""
    length = header_length(content, what)
    text = content[PRELUDE.size : PRELUDE.size + length]
    if len(text) != length:
        raise ReplayError(f"{what} is cut off in its header: {len(text)} bytes of {length}.")
    if zlib.crc32(text) != PRELUDE.unpack_from(content)[3]:
        raise ReplayError(f"{what} is damaged: its header is not what was written.")
    try:
        body = json.loads(text.decode(), parse_constant=_refuse, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise ReplayError(f"{what} has a header that is no strict JSON: {str(error)[:200]}.") from error
    if not isinstance(body, dict) or set(body) != {"about", "blocks"} or not isinstance(body["blocks"], list):
        raise ReplayError(f"{what} has a header without 'about' and 'blocks'.")
    if not isinstance(body["about"], dict) or not all(map(_is_said, body["about"].values())):
        raise ReplayError(f"{what} says more of itself than texts, numbers and mappings of them.")
    if len(body["blocks"]) > MOST_BLOCKS:
        raise ReplayError(f"{what} claims {len(body['blocks'])} blocks; a replay has {MOST_BLOCKS} at most.")
    header = Header(body["about"], tuple(_block(each, what) for each in body["blocks"]))
    _require_sound(header, what)
    return header


def header_length(prelude: bytes, what: str) -> int:
    """Return how long the header of a file is, given its first bytes."""
    if len(prelude) < PRELUDE.size or prelude[:8] != MAGIC:
        raise ReplayError(f"{what} is no replay: it does not begin with {MAGIC.decode()}.")
    _, version, length, _ = PRELUDE.unpack_from(prelude)
    if version != VERSION:
        raise ReplayError(f"{what} has version {version} of the format; this hookloop reads version {VERSION}.")
    if length > MOST_HEADER_BYTES:
        raise ReplayError(f"{what} claims a header of {length} bytes; {MOST_HEADER_BYTES} are the most.")
    return length


def _block(read: Any, what: str) -> Block:
    is_sound = (
        isinstance(read, dict)
        and set(read) == {each.name for each in fields(Block)}
        and isinstance(read["name"], str)
        and _NAME.fullmatch(read["name"]) is not None
        and read["dtype"] in ITEM_BYTES
        and read["encoding"] in ENCODINGS
        and isinstance(read["shape"], list)
        and 1 <= len(read["shape"]) <= MOST_AXES
        and all(_is_count(size, MOST_BYTES) for size in read["shape"])
        and _is_count(read["stored"], MOST_BYTES)
        and _is_count(read["crc32"], 2**32 - 1)
    )
    if not is_sound:
        raise ReplayError(f"{what} lists a block in a way that is not understood: {read!r:.200}.")
    return Block(**{**read, "shape": tuple(read["shape"])})


def _require_sound(header: Header, what: str) -> None:
    names = [block.name for block in header.blocks]
    if len(set(names)) != len(names):
        raise ReplayError(f"{what} lists a block twice.")
    total = sum(block.bytes for block in header.blocks)
    if total > MOST_BYTES:
        raise ReplayError(f"{what} claims {total} bytes of blocks; {MOST_BYTES} are the most.")
    rewards = next((block for block in header.blocks if block.name == "rewards"), None)
    if rewards is None or len(rewards.shape) != 1 or not 1 <= rewards.shape[0] <= MOST_STEPS:
        raise ReplayError(f"{what} has no rewards, one for each of its steps.")
    for block in header.blocks:
        # What is seen after the last step is there, too.
        most = rewards.shape[0] + block.name.startswith("observations")
        if not rewards.shape[0] <= block.shape[0] <= most:
            raise ReplayError(f"{what} has {block.shape[0]} rows of {block.name!r} for {rewards.shape[0]} steps.")


def _is_count(value: Any, most: int) -> bool:
    return type(value) is int and 0 <= value <= most


def _is_said(value: Any, levels: int = 2) -> bool:
    if isinstance(value, dict):
        return levels > 0 and all(_is_said(each, levels - 1) for each in value.values())
    return value is None or isinstance(value, str | bool | int | float)


def _refuse(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) != len(pairs):
        raise ValueError("a name stands twice in one mapping")
    return read
