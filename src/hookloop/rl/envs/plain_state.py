"""Turn the values an environment keeps in its attributes into plain data, and back, with the same bits.

Mutable values (lists, arrays, generators, ...) go to a heap and are referred to by number, so two attributes that
share one list share one again after loading. Nothing is pickled and nothing in the data names code to run: decoding
builds the types below and no others.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from hookloop.core.plain import is_tensor
from hookloop.rl.envs.errors import EnvStateError

_BIT_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
# What the usual file formats for tensors can hold; other arrays are saved as their bytes.
_TENSOR_DTYPES = frozenset({
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
})  # fmt: skip
_RAW_KINDS = "SUMm"


class NotPlainError(Exception):
    """A value cannot be turned into plain data; the text is what to call it."""


class PlainEncoder:
    """Encodes values that may share parts; ``heap`` belongs to all of them."""

    def __init__(self) -> None:
        self.heap: dict[str, Any] = {}
        self._numbers: dict[int, int] = {}
        # Without a reference, a temporary could die and its id come back as that of another value.
        self._alive: list[object] = []
        self._by_memory: dict[int, list[np.ndarray]] = {}

    def encode(self, value: object) -> Any:
        """Return plain data for the value; what was collected for one that fails is forgotten again."""
        mark = len(self._alive)
        try:
            return self._encode(value)
        except NotPlainError:
            for item in self._alive[mark:]:
                self.heap.pop(str(self._numbers.pop(id(item))), None)
            del self._alive[mark:]
            raise

    def _encode(self, value: object) -> Any:
        kind = type(value)
        if value is None or kind is bool or kind is str:
            return value
        if kind is int or kind is float or kind is bytes:
            return _encode_scalar(value)
        if isinstance(value, np.generic):
            return self._encode_numpy_scalar(value)
        if kind is tuple or kind is frozenset:
            return {kind.__name__: [self._encode(item) for item in _items(value)]}
        return self._encode_shared(value)

    def _encode_numpy_scalar(self, value: np.generic) -> dict[str, Any]:
        if isinstance(value, np.str_ | np.bytes_):
            return {f"numpy_{value.dtype.kind}": self._encode(value.item())}
        name = value.dtype.name
        if name not in _TENSOR_DTYPES:
            raise NotPlainError(f"a numpy {name}")
        return {"numpy": name, "value": self._encode(value.item())}

    def _encode_shared(self, value: object) -> dict[str, int]:
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = len(self._alive)
            self._alive.append(value)
            self.heap[str(number)] = self._contents(value)
        return {"@": number}

    def _contents(self, value: object) -> Any:
        if isinstance(value, np.ndarray) and type(value) is np.ndarray:
            return self._encode_array(value)
        if type(value) in (list, set, deque):
            contents = {type(value).__name__: [self._encode(item) for item in _items(value)]}
            return contents | ({"maxlen": value.maxlen} if isinstance(value, deque) else {})
        if type(value) is dict:
            return {"dict": [[self._encode(key), self._encode(item)] for key, item in value.items()]}
        if isinstance(value, np.random.Generator):
            return self._encode_bits(value.bit_generator, "generator")
        if isinstance(value, np.random.RandomState):
            return {"random_state": self._encode(value.get_state(legacy=False))}
        if type(value) is random.Random:
            return {"random": self._encode(value.getstate())}
        raise NotPlainError(f"a {type(value).__qualname__}")

    def _encode_bits(self, bits: np.random.BitGenerator, tag: str) -> dict[str, Any]:
        name = type(bits).__name__
        if name not in _BIT_GENERATORS:
            raise NotPlainError(f"a generator of the kind {name}")
        return {tag: name, "state": self._encode(bits.state)}

    def _encode_array(self, array: np.ndarray) -> Any:
        self._require_own_memory(array)
        if array.dtype.name in _TENSOR_DTYPES and array.dtype.isnative:
            return array.copy()
        if array.dtype.kind not in _RAW_KINDS:
            raise NotPlainError(f"an array of dtype {array.dtype}")
        raw = np.frombuffer(array.tobytes(), dtype=np.uint8).copy()
        return {"raw": raw, "dtype": array.dtype.str, "shape": list(array.shape)}

    def _require_own_memory(self, array: np.ndarray) -> None:
        """Refuse two arrays that are windows on one memory: loaded apart, they would drift apart."""
        root: object = array
        while isinstance(root, np.ndarray) and root.base is not None:
            root = root.base
        relatives = self._by_memory.setdefault(id(root), [])
        if any(np.may_share_memory(array, other) for other in relatives):
            raise NotPlainError("an array that shares memory with another one")
        relatives.append(array)


class PlainDecoder:
    """Builds values again from what an encoder made of them."""

    def __init__(self, heap: Mapping[str, Any]) -> None:
        self._heap = heap
        self._built: dict[int, object] = {}

    def decode(self, data: Any) -> Any:
        """Return the value; the same number on the heap gives the same object."""
        if data is None or isinstance(data, bool | int | float | str):
            return data
        if isinstance(data, Mapping):
            if "@" in data:
                return self._shared(int(data["@"]))
            for tag, build in _BUILDERS.items():
                if tag in data:
                    return build(self, data)
        raise _damaged(data)

    def _shared(self, number: int) -> object:
        if number not in self._built:
            try:
                contents = self._heap[str(number)]
            except KeyError as error:
                raise _damaged({"@": number}) from error
            self._build(number, contents)
        return self._built[number]

    def _build(self, number: int, contents: Any) -> None:
        if is_tensor(contents):
            self._built[number] = np.array(contents)
        elif "list" in contents:
            # Registered before it is filled, so a list that contains itself can be built.
            items: list[object] = []
            self._built[number] = items
            items.extend(self._all(contents["list"]))
        elif "dict" in contents:
            by_key: dict[object, object] = {}
            self._built[number] = by_key
            by_key.update((self.decode(key), self.decode(item)) for key, item in contents["dict"])
        else:
            self._built[number] = self.decode(contents)

    def _all(self, data: Iterable[Any]) -> Iterable[Any]:
        return [self.decode(item) for item in data]


def _build_deque(decoder: PlainDecoder, data: Mapping[str, Any]) -> deque[Any]:
    return deque((decoder.decode(item) for item in data["deque"]), maxlen=data["maxlen"])


def _build_array(_: PlainDecoder, data: Mapping[str, Any]) -> np.ndarray:
    dtype = np.dtype(data["dtype"])
    if dtype.kind not in _RAW_KINDS:
        raise _damaged(data)
    return np.frombuffer(np.asarray(data["raw"]).tobytes(), dtype=dtype).reshape(data["shape"]).copy()


def _build_numpy_scalar(decoder: PlainDecoder, data: Mapping[str, Any]) -> np.generic:
    if data["numpy"] not in _TENSOR_DTYPES:
        raise _damaged(data)
    return np.dtype(data["numpy"]).type(decoder.decode(data["value"]))


def _build_generator(decoder: PlainDecoder, data: Mapping[str, Any]) -> np.random.Generator:
    if data["generator"] not in _BIT_GENERATORS:
        raise _damaged(data)
    bits: np.random.BitGenerator = getattr(np.random, data["generator"])(0)
    bits.state = decoder.decode(data["state"])
    return np.random.Generator(bits)


def _build_random_state(decoder: PlainDecoder, data: Mapping[str, Any]) -> np.random.RandomState:
    built = np.random.RandomState(0)
    built.set_state(decoder.decode(data["random_state"]))
    return built


def _build_random(decoder: PlainDecoder, data: Mapping[str, Any]) -> random.Random:
    built = random.Random(0)
    built.setstate(decoder.decode(data["random"]))
    return built


_BUILDERS: dict[str, Callable[[PlainDecoder, Mapping[str, Any]], Any]] = {
    "int": lambda _, data: int(data["int"]),
    "float": lambda _, data: float(data["float"]),
    "bytes": lambda _, data: bytes.fromhex(data["bytes"]),
    "tuple": lambda decoder, data: tuple(decoder.decode(item) for item in data["tuple"]),
    "frozenset": lambda decoder, data: frozenset(decoder.decode(item) for item in data["frozenset"]),
    "set": lambda decoder, data: {decoder.decode(item) for item in data["set"]},
    "deque": _build_deque,
    "raw": _build_array,
    "numpy": _build_numpy_scalar,
    "numpy_U": lambda decoder, data: np.str_(decoder.decode(data["numpy_U"])),
    "numpy_S": lambda decoder, data: np.bytes_(decoder.decode(data["numpy_S"])),
    "generator": _build_generator,
    "random_state": _build_random_state,
    "random": _build_random,
}


def _encode_scalar(value: object) -> Any:
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    # A generator's state has 128 bits; many readers of JSON stop at 64.
    return value if -(2**63) <= int(value) < 2**63 else {"int": str(value)}  # pyright: ignore[reportArgumentType]


def _items(value: Any) -> Iterable[object]:
    return value


def _damaged(data: object) -> EnvStateError:
    text = repr(data)
    return EnvStateError(
        f"The saved state of an environment contains {text[:80]}, which stands for no value. "
        "The state is damaged; use another checkpoint."
    )
