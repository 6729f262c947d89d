"""Files that nobody wrote by mistake: manifests, tensor files and states to be refused, with hashes that fit."""

from __future__ import annotations

import hashlib
import json
from typing import Any

SHA = "0" * 64


def signed(body: dict[str, Any]) -> bytes:
    """Return a manifest whose hash fits, whatever stands in it."""
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    return (json.dumps({**body, "sha256": digest}, indent=1) + "\n").encode()


def entry(**changes: Any) -> dict[str, Any]:
    """Return what a header says of a tensor, with changes."""
    return {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **changes}


def tensor_file(header: Any, data: bytes = bytes(8)) -> bytearray:
    """Return a file with this header, whether it fits the data or not."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return bytearray(len(text).to_bytes(8, "little") + text + data)


TENSOR_FILES: dict[str, bytearray] = {
    "nothing": bytearray(),
    "a part of the length": bytearray(b"\x08"),
    "a header without end": bytearray(b"\xff" * 8),
    "a header beyond the limit": bytearray((100_000_001).to_bytes(8, "little") + bytes(64)),
    "a pickle": tensor_file(b"\x80\x04."),
    "a list": tensor_file([]),
    "no number": tensor_file(b'{"a": NaN}'),
    "a deep header": tensor_file(b'{"a": ' + b"[" * 5000 + b"]" * 5000 + b"}"),
    "a name twice": tensor_file(b'{"a": ' + json.dumps(entry()).encode() + b', "a": 1}'),
    "a number for an entry": tensor_file({"a": 3}),
    "an empty entry": tensor_file({"a": {}}),
    "a type nobody has": tensor_file({"a": entry(dtype="F8")}),
    "a list of types": tensor_file({"a": entry(dtype=["F32"])}),
    "a text for a shape": tensor_file({"a": entry(shape="")}),
    "a mapping for a shape": tensor_file({"a": entry(shape={})}),
    "a fraction for a shape": tensor_file({"a": entry(shape=[2.0])}),
    "a truth value for a shape": tensor_file({"a": entry(shape=[True, 2])}),
    "a negative shape": tensor_file({"a": entry(shape=[-1, -2])}),
    "a shape of another size": tensor_file({"a": entry(shape=[3])}),
    "too many dimensions": tensor_file({"a": entry(shape=[1] * 65 + [2])}),
    "a vast nothing": tensor_file({"a": entry(shape=[0, 2**63, 2**63], data_offsets=[0, 0])}, b""),
    "a vast shape": tensor_file({"a": entry(shape=[2**62, 2**62])}),
    "one offset": tensor_file({"a": entry(data_offsets=[0])}),
    "three offsets": tensor_file({"a": entry(data_offsets=[0, 4, 8])}),
    "offsets turned round": tensor_file({"a": entry(data_offsets=[8, 0])}),
    "a negative offset": tensor_file({"a": entry(data_offsets=[-8, 0])}),
    "offsets beyond the end": tensor_file({"a": entry(data_offsets=[8, 16])}),
    "two tensors in one place": tensor_file({"a": entry(), "b": entry()}),
    "bytes that belong to nobody": tensor_file({"a": entry()}, bytes(16)),
    "a gap before": tensor_file({"a": entry(data_offsets=[4, 12])}, bytes(12)),
    "a field nobody knows": tensor_file({"a": entry(more=1)}),
    "metadata that is no text": tensor_file({"a": entry(), "__metadata__": {"a": 1}}),
    "metadata that is a list": tensor_file({"a": entry(), "__metadata__": []}),
}  # fmt: skip
"""Tensor files that are none, by what is wrong with them."""

MEANINGLESS: list[dict[str, Any]] = [
    {"format": "other"},
    {"format_version": 2},
    {"format_version": 1.0},
    {"format_version": True},
    {"format_version": None},
    {"run_id": 3},
    {"run_id": "\x1b[31mred"},
    {"name": None},
    {"name": "../../step-000000000012"},
    {"name": "step-000000000013"},
    {"name": "step-000000000012-final"},
    {"step": "12"},
    {"step": 12.0},
    {"step": True},
    {"step": -12},
    {"step": 10**12},
    {"clocks": []},
    {"clocks": {"epochs": "12"}},
    {"clocks": {"epochs": None}},
    {"clocks": {"epochs": 10**400}},
    {"clocks": {"epochs": True}},
    {"attempt": None},
    {"parent": 3},
    {"kind": "finest"},
    {"kind": ["final"]},
    {"exactness": "\ud800"},
    {"metrics": {"return/mean": "1"}},
    {"metrics": {"return/mean": [1]}},
    {"metrics": 1},
    {"metadata": None},
    {"environment": "linux"},
    {"more": 1},
    {"files": []},
    {"files": {"../state.json": {"bytes": 2, "sha256": SHA}}},
    {"files": {"/etc/passwd": {"bytes": 2, "sha256": SHA}}},
    {"files": {"a\0b": {"bytes": 2, "sha256": SHA}}},
    {"files": {"stat\u0435.json": {"bytes": 2, "sha256": SHA}}},
    {"files": {"": {"bytes": 2, "sha256": SHA}}},
    {"files": {".hidden": {"bytes": 2, "sha256": SHA}}},
    {"files": {"MANIFEST.json": {"bytes": 2, "sha256": SHA}}},
    {"files": {"a" * 101: {"bytes": 2, "sha256": SHA}}},
    {"files": {"a": {"bytes": -1, "sha256": SHA}}},
    {"files": {"a": {"bytes": 2.0, "sha256": SHA}}},
    {"files": {"a": {"bytes": True, "sha256": SHA}}},
    {"files": {"a": {"bytes": 2, "sha256": SHA[1:]}}},
    {"files": {"a": {"bytes": 2, "sha256": "G" * 64}}},
    {"files": {"a": {"bytes": 2, "sha256": None}}},
    {"files": {"a": {"bytes": 2}}},
    {"files": {"a": {"bytes": 2, "sha256": SHA, "mode": 1}}},
    {"files": {"a": [2, SHA]}},
    {"files": {f"file-{number}": {"bytes": 0, "sha256": SHA} for number in range(101)}},
]
"""Changes after which a manifest means nothing."""

NO_STRICT_JSON: list[bytes] = [
    b"\x80\x04\x95.",
    b"[]",
    b"null",
    b"{}",
    b'{"step": NaN}',
    b'{"step": 1e999}',
    b'{"step": ' + b"9" * 5000 + b"}",
    b"[" * 100_000,
    b'{"a":' * 500 + b"1" + b"}" * 500,
    "\ufeff{}".encode(),
    '{"a": 1}'.encode("utf-16"),
    b"\xff\xfe",
]
"""Texts that are no JSON, or JSON that is not strict."""
