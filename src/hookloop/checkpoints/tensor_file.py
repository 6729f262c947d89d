"""The safetensors format, as much of it as a checkpoint needs: a header, and the bytes of all tensors in a row.

Written here rather than by the library so that a file goes out of, and comes into, one piece of memory without a copy
in between, while it is hashed. What is written is read by ``safetensors`` and the other way round; a test holds that.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from mmap import mmap
from typing import Any, NamedTuple, cast

import numpy as np

from hookloop.errors import DamagedCheckpointError

MAX_HEADER_BYTES = 100_000_000  # the limit of the format
_PREFIX_BYTES = 8
_ALIGNMENT = 8
_METADATA = "__metadata__"

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
        entries: dict[str, Any] = {_METADATA: metadata} if metadata else {}
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
        entries.pop(_METADATA, None)
        self.places = {name: self._place(name, entry) for name, entry in entries.items()}

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
        try:
            read = json.loads(bytes(self._content[_PREFIX_BYTES:start]))
        except (ValueError, RecursionError) as error:
            raise self._fault(f"has a header that is no JSON ({error})") from error
        if not isinstance(read, dict):
            raise self._fault("has a header that is no mapping")
        return start, cast("dict[str, Any]", read)

    def _place(self, name: str, entry: Any) -> Place:
        try:
            type_, shape, (begin, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
            is_sound = all(type(number) is int and number >= 0 for number in (*shape, begin, end))
            is_sound = is_sound and end - begin == ITEM_BYTES[type_] * math.prod(shape)
        except (KeyError, TypeError, ValueError) as error:
            raise self._fault(f"describes {name!r} in a way that is not understood ({entry!r:.200})") from error
        if not is_sound or self._start + end > len(self._content):
            raise self._fault(f"describes {name!r} with numbers that do not fit ({entry!r:.200})")
        return Place(type_, shape, begin, end)

    def _fault(self, what: str) -> DamagedCheckpointError:
        return DamagedCheckpointError(f"{self._what} {what}.")
