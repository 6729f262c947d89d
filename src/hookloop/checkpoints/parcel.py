"""A state as one piece of bytes, on its way from one process to another: the same two halves as in a checkpoint."""

from __future__ import annotations

import json
from typing import Any

from hookloop.checkpoints.snapshot import WHOLE_PART, SnapshotBuffers
from hookloop.checkpoints.strict_json import parse_json
from hookloop.checkpoints.tensor_file import TensorFile
from hookloop.checkpoints.tree import put_together

Plain = Any

_WHAT = "a state from another process"
_LENGTH_BYTES = 8


def pack(state: Plain) -> bytes:
    """Return a state of strict JSON and tensors as bytes."""
    snapshot = SnapshotBuffers().take(state, {WHOLE_PART: ()})  # the one part that is never cut into pieces
    text = json.dumps(snapshot.skeleton, allow_nan=False, separators=(",", ":")).encode()
    tensors = snapshot.arenas[f"{WHOLE_PART}.safetensors"].content({})
    return b"".join((len(text).to_bytes(_LENGTH_BYTES, "little"), text, *tensors))


def unpack(content: bytes) -> Plain:
    """Return the state that was packed."""
    end = _LENGTH_BYTES + int.from_bytes(content[:_LENGTH_BYTES], "little")
    tensors = TensorFile(bytearray(content[end:]), _WHAT)
    return put_together(
        parse_json(content[_LENGTH_BYTES:end], _WHAT), lambda kind, _part, name: getattr(tensors, kind)(name)
    )
