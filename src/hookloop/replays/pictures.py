"""Frames as pictures that a page can hold."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np

from hookloop.replays.files import Array

MOST_PICTURE_BYTES = 24_000_000
"""Of all pictures of a page; beyond it only every second, third, ... frame is shown."""


def pictures_of(frames: Array, *, most_bytes: int = MOST_PICTURE_BYTES) -> tuple[list[str], int]:
    """Return frames [T, H, W, 3] as data URIs, and how many steps each one stands for."""
    first = len(_png(frames[0]))
    stride = max(1, -(-first * len(frames) // most_bytes))
    return [_as_uri(_png(frame)) for frame in frames[::stride]], stride


def is_picture(array: Array) -> bool:
    """Tell whether rows look like pictures: bytes of height, width and three colours."""
    return array.dtype == np.uint8 and array.ndim == 4 and array.shape[-1] == 3 and 0 not in array.shape


def _png(frame: Array) -> bytes:
    height, width, _ = frame.shape
    lines = np.zeros((height, 1 + width * 3), np.uint8)  # each line begins with its filter: none
    lines[:, 1:] = frame.reshape(height, -1)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts: tuple[tuple[bytes, Any], ...] = (
        (b"IHDR", head), (b"IDAT", zlib.compress(lines.tobytes(), 6)), (b"IEND", b""),
    )  # fmt: skip
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _as_uri(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"
