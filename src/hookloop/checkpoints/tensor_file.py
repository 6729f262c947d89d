"""The safetensors format, as much of it as a checkpoint needs: a header, and the bytes of all tensors in a row.

Written here rather than by the library so that a file goes out of, and comes into, one piece of memory without a copy
in between, while it is hashed. What is written is read by ``safetensors`` and the other way round; a test holds that.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from mmap import mmap
from typing import Any, NamedTuple

import numpy as np

from hookloop.checkpoints.strict_json import parse_json
from hookloop.errors import DamagedCheckpointError

MAX_HEADER_BYTES = 100_000_000  # the limit of the format
_PREFIX_BYTES = 8
_ALIGNMENT = 8
_MOST_DIMENSIONS = 64  # the limit of numpy and torch
_MOST_NUMBERS = 1 << 59
METADATA = "__metadata__"
"""The one name in a header that is no tensor's."""

ITEM_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "U16": 2, "I16": 2, "F16": 2, "BF16": 2,
    "U32": 4, "I32": 4, "F32": 4, "U64": 8, "I64": 8, "F64": 8,
}  # fmt: skip
"""The types a checkpoint can hold, and the bytes of one number."""

TYPE_NAMES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16", "float16": "F16", "bfloat16": "BF16",
    "uint32": "U32", "int32": "I32", "float32": "F32", "uint64": "U64", "int64": "I64", "float64": "F64",
}  # fmt: skip
"""From what numpy and torch call a type to what the file calls it."""

NAMES_OF_TYPES = {short: name for name, short in TYPE_NAMES.items()}


class Place(NamedTuple):
    """Where one tensor lies among the bytes, and what it is."""

    type: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Where every tensor of a file lies; in the order of the bytes, without gaps."""

    places: dict[str, Place]
    data_bytes: int

    @classmethod
    def of(cls, kinds: dict[str, tuple[str, tuple[int, ...]]]) -> Layout:
        """Lay out tensors of these types and shapes; wide types first, so that every one is aligned."""
        places: dict[str, Place] = {}
        begin = 0
        for name in sorted(kinds, key=lambda name: (-ITEM_BYTES[kinds[name][0]], name)):
            type_, shape = kinds[name]
            end = begin + ITEM_BYTES[type_] * math.prod(shape)
            places[name] = Place(type_, shape, begin, end)
            begin = end
        return cls(places, begin)

    def header(self, metadata: dict[str, str]) -> bytes:
        """Return the bytes that stand before the tensors."""
        entries: dict[str, Any] = {METADATA: metadata} if metadata else {}
        for name, place in self.places.items():
            entries[name] = {"dtype": place.type, "shape": place.shape, "data_offsets": (place.begin, place.end)}
        text = json.dumps(entries, separators=(",", ":"), allow_nan=False).encode()
        text += b" " * (-(_PREFIX_BYTES + len(text)) % _ALIGNMENT)
        return len(text).to_bytes(_PREFIX_BYTES, "little") + text


class TensorFile:
    """The content of a file, taken as it came: nothing in it is believed before it is checked."""

    def __init__(self, content: bytearray | mmap, what: str) -> None:
        self._what = what
        self._content = content
        self._start, entries = self._read_header()
        self._require_texts(entries.pop(METADATA, {}))
        self.places = {name: self._place(name, entry) for name, entry in entries.items()}
        self._require_no_gaps()

    def numpy(self, name: str) -> np.ndarray[Any, Any]:
        """Return a tensor as an array in the file's memory."""
        place = self._find(name)
        if place.type == "BF16":
            raise self._fault(f"holds {name!r} as BF16, which numpy does not have")
        dtype = np.dtype(NAMES_OF_TYPES[place.type])
        flat = np.frombuffer(self._content, dtype, math.prod(place.shape), self._start + place.begin)
        return flat.reshape(place.shape)

    def torch(self, name: str) -> Any:
        """Return a tensor in the file's memory."""
        import torch  # here, since commands that only read manifests should not wait for it

        place = self._find(name)
        dtype = getattr(torch, NAMES_OF_TYPES[place.type])
        if place.begin == place.end:
            return torch.empty(place.shape, dtype=dtype)
        flat = torch.frombuffer(
            self._content, dtype=dtype, count=math.prod(place.shape), offset=self._start + place.begin
        )
        return flat.reshape(place.shape)

    def _find(self, name: str) -> Place:
        if name not in self.places:
            raise self._fault(f"does not hold {name!r}")
        return self.places[name]

    def _read_header(self) -> tuple[int, dict[str, Any]]:
        size = int.from_bytes(self._content[:_PREFIX_BYTES], "little")
        start = _PREFIX_BYTES + size
        if len(self._content) < _PREFIX_BYTES or size > MAX_HEADER_BYTES or start > len(self._content):
            raise self._fault(f"claims a header of {size} bytes in a file of {len(self._content)}")
        read = parse_json(self._content[_PREFIX_BYTES:start], f"The header of {self._what}")
        if not isinstance(read, dict):
            raise self._fault("has a header that is no mapping")
        return start, read

    def _require_texts(self, metadata: Any) -> None:
        if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
            raise self._fault("has metadata that are not texts")

    def _require_no_gaps(self) -> None:
        """Refuse tensors that share bytes, and bytes that are no tensor's."""
        reached = 0
        for name, place in sorted(self.places.items(), key=lambda item: item[1][2:]):
            if place.begin != reached:
                raise self._fault(f"has {name!r} at byte {place.begin}, where {reached} is next")
            reached = place.end
        if self._start + reached != len(self._content):
            raise self._fault(f"has {len(self._content) - self._start} bytes of tensors and describes {reached}")

    def _place(self, name: str, entry: Any) -> Place:
        if not _is_entry(entry):
            raise self._fault(f"describes {name!r:.100} in a way that is not understood ({entry!r:.200})")
        shape, (begin, end) = tuple(entry["shape"]), entry["data_offsets"]
        # The zeros of an empty tensor's shape must not hide that its other numbers are too large.
        fits = math.prod(size or 1 for size in shape) < _MOST_NUMBERS
        if not fits or end - begin != ITEM_BYTES[entry["dtype"]] * math.prod(shape):
            raise self._fault(f"describes {name!r:.100} with numbers that do not fit ({entry!r:.200})")
        return Place(entry["dtype"], shape, begin, end)

    def _fault(self, what: str) -> DamagedCheckpointError:
        return DamagedCheckpointError(f"{self._what} {what}.")


def _is_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and set(entry) == {"dtype", "shape", "data_offsets"}
        and isinstance(entry["dtype"], str)
        and entry["dtype"] in ITEM_BYTES
        and _are_sizes(entry["shape"])
        and len(entry["shape"]) <= _MOST_DIMENSIONS
        and _are_sizes(entry["data_offsets"])
        and len(entry["data_offsets"]) == 2
    )


def _are_sizes(numbers: Any) -> bool:
    return isinstance(numbers, list) and all(type(number) is int and number >= 0 for number in numbers)
