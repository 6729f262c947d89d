"""Take a nested state apart into strict JSON and named tensors, and put it together again.

A tensor's place in the JSON is held by ``{"$torch": "part:name"}`` or ``{"$numpy": "part:name"}``; a key of the state
that begins with a dollar sign gets a second one, so that no state can be mistaken for a place holder.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hookloop.checkpoints.strict_json import MAX_DEPTH
from hookloop.checkpoints.tensor_file import METADATA
from hookloop.errors import DamagedCheckpointError, HookStateError

Plain = Any
Parts = Mapping[str, tuple[str, ...]]
"""Which branch of the state goes into a file of its own: the file's name, and the branch's path."""

REST = "state"
_HOLDERS = ("$torch", "$numpy", "$scalar")


class Disassembly:
    """A state in two halves: ``skeleton`` is strict JSON, ``tensors`` are the arrays by part and name."""

    def __init__(self, state: Plain, parts: Parts) -> None:
        self._parts = [(path, name) for name, path in parts.items()]
        self.tensors: dict[str, dict[str, Any]] = {name: {} for name in (*parts, REST)}
        self.skeleton = self._take(state, ())

    def _take(self, value: Plain, path: tuple[str, ...]) -> Plain:
        if len(path) > MAX_DEPTH:
            raise HookStateError(f"The state is nested deeper than {MAX_DEPTH} levels at {'.'.join(path[:5])}...")
        if isinstance(value, Mapping):
            return {_escape(_text_key(key, path)): self._take(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._take(item, (*path, str(index))) for index, item in enumerate(value)]
        if isinstance(value, np.generic):
            return {"$scalar": self._keep(np.asarray(value), path)}
        if isinstance(value, np.ndarray):
            return {"$numpy": self._keep(value, path)}
        if hasattr(value, "detach"):
            return {"$torch": self._keep(value.detach(), path)}
        return _plain(value, path)

    def _keep(self, tensor: Any, path: tuple[str, ...]) -> str:
        part, inner = self._place(path)
        name = "/".join(inner)
        while name in self.tensors[part] or name == METADATA:  # {"a/b": ...} beside {"a": {"b": ...}}
            name += "'"
        self.tensors[part][name] = tensor
        return f"{part}:{name}"

    def _place(self, path: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        for prefix, part in self._parts:
            if path[: len(prefix)] == prefix:
                return part, path[len(prefix) :]
        return REST, path


def put_together(skeleton: Plain, find: Callable[[str, str, str], Any]) -> Plain:
    """Return the state that was taken apart; ``find(kind, part, name)`` gives an array, kind is torch or numpy."""
    return _put(skeleton, find, 0)


def _put(value: Plain, find: Callable[[str, str, str], Any], depth: int) -> Plain:
    if depth > MAX_DEPTH:
        raise DamagedCheckpointError(f"The state is nested deeper than {MAX_DEPTH} levels; no run writes such a state.")
    if isinstance(value, list):
        return [_put(item, find, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((key, place),) = value.items()
        if key in _HOLDERS:
            return _filled(key, place, find)
    return {_unescape(key): _put(item, find, depth + 1) for key, item in value.items()}


def _plain(value: object, path: tuple[str, ...]) -> object:
    is_finite_float = isinstance(value, float) and math.isfinite(value)
    if value is None or isinstance(value, bool | int | str) or is_finite_float:
        return value
    what = value if isinstance(value, float) else f"a {type(value).__name__}"
    raise HookStateError(
        f"{'.'.join(path)} is {what}, which a checkpoint cannot hold; it holds finite numbers, texts, lists, "
        "mappings with text keys, and tensors of torch and numpy."
    )


def _text_key(key: object, path: tuple[str, ...]) -> str:
    if not isinstance(key, str):
        raise HookStateError(f"{'.'.join(path)} has the key {key!r}; in a checkpoint every key is a text.")
    return key


def _filled(holder: str, place: object, find: Callable[[str, str, str], Any]) -> Any:
    part, colon, name = place.partition(":") if isinstance(place, str) else ("", "", "")
    if not colon:
        raise DamagedCheckpointError(f"A tensor stands at 'part:name', got {place!r:.100}.")
    if holder == "$torch":
        return find("torch", part, name)
    array = find("numpy", part, name)
    return array[()] if holder == "$scalar" else array


def _escape(key: str) -> str:
    return f"${key}" if key.startswith("$") else key


def _unescape(key: str) -> str:
    if not key.startswith("$"):
        return key
    if not key.startswith("$$"):
        raise DamagedCheckpointError(f"The state has the key {key!r:.100}, which no state is written with.")
    return key[1:]
