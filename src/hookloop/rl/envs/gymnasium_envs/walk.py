"""Find the layers of an environment: vector environments, wrappers, environments, and the plain objects they hold."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import gymnasium
from gymnasium.vector import AsyncVectorEnv, VectorEnv

from hookloop.rl.envs.gymnasium_envs.fixed import is_fixed_kind

Path: TypeAlias = tuple[str | int, ...]
"""The way to a layer: the index of the environment, then attributes, and keys or indices of containers."""

# Gymnasium's own notes on how an environment was made; the same for every environment made the same way.
_BOOKKEEPING = frozenset({"spec", "_cached_spec", "metadata", "_metadata", "_saved_kwargs", "env_fns", "render_mode"})
_ENVS = (gymnasium.Env, VectorEnv)


class _Ordinary:
    """A class like most: its instances are no larger than this one's, so all they hold is in their ``__dict__``."""


class Walk:
    """Every layer once, with the way to it, and the other ways that lead to layers already met."""

    def __init__(self, roots: Sequence[object]) -> None:
        self.layers: dict[Path, Any] = {}
        self.aliases: dict[Path, Path] = {}
        self.ids = met = dict[int, Path]()
        to_visit: list[tuple[Path, Any]] = []
        to_visit.extend(((index,), root) for index, root in reversed(list(enumerate(roots))))
        while to_visit:
            path, layer = to_visit.pop()
            if id(layer) in met:
                self.aliases[path] = met[id(layer)]
                continue
            met[id(layer)] = path
            self.layers[path] = layer
            if not isinstance(layer, AsyncVectorEnv) and hasattr(layer, "__dict__"):
                to_visit.extend(list(_children(path, layer))[::-1])

    def differences(self, when_new: Walk) -> list[str]:
        """Say where layers were added, removed or exchanged: only what is inside of them can be restored."""
        reasons: list[str] = []
        for path, layer in self.layers.items():
            earlier = when_new.layers.get(path)
            if type(earlier) is not type(layer):
                kind = type(layer).__qualname__
                reasons.append(f"{place(path)} is a {kind} that was not there when the environment was made")
            elif earlier is not layer and id(earlier) in self.ids:
                reasons.append(f"{place(path)} has changed places with another object since the environment was made")
        reasons += [
            f"{place(path)} points at another object than when the environment was made"
            for path, target in self.aliases.items()
            if when_new.aliases.get(path) != target
        ]
        containers = {path[:-1] for path in self.layers}
        # An emptied container, or None in the place of a layer, is saved as a plain value.
        reasons += [
            f"{place(path)} was there when the environment was made and is no more"
            for path in when_new.layers
            if path not in self.layers and path[:-1] in containers and path[:-1] not in self.layers
        ]
        return reasons


def own_attributes(layer: object) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that are the layer's own: no layers themselves and no notes of Gymnasium."""
    if isinstance(layer, gymnasium.Space | AsyncVectorEnv) or saves_itself(layer):
        return
    for name, value in vars(layer).items():
        if name not in _BOOKKEEPING and not _is_layer(value) and not any(True for _ in _layers_within((), value)):
            yield name, value


def _children(path: Path, layer: object) -> Iterator[tuple[Path, Any]]:
    is_own_keeper = saves_itself(layer)
    for name, value in vars(layer).items():
        if name in _BOOKKEEPING:
            continue
        if _is_layer(value):
            if not is_own_keeper or isinstance(value, (*_ENVS, gymnasium.Space)):
                yield (*path, name), value
        elif not is_own_keeper:
            yield from _layers_within((*path, name), value)


def _layers_within(path: Path, value: object) -> Iterator[tuple[Path, Any]]:
    """Yield the layers in a container that holds nothing else, such as the environments of a vector environment."""
    parts: Iterable[tuple[Any, object]]
    if isinstance(value, list | tuple):
        parts = enumerate(value)
    elif isinstance(value, dict) and all(type(key) is str for key in value):
        parts = value.items()
    else:
        return
    found: list[tuple[Path, Any]] = []
    for key, part in parts:
        if not _is_layer(part):
            return
        found.append(((*path, key), part))
    yield from found


def _is_layer(value: object) -> bool:
    if isinstance(value, (*_ENVS, gymnasium.Space)):
        return True
    return hasattr(value, "__dict__") and not is_fixed_kind(value) and not hides_something(value)


def hides_something(value: object) -> bool:
    """Tell whether C code or slots keep things outside of ``__dict__``, where they would be missed."""
    return type(value).__basicsize__ > _Ordinary.__basicsize__


def saves_itself(layer: object) -> bool:
    """Tell whether the layer keeps the protocol ``SavesItself``; a method of that name may also mean another thing."""
    get_state, set_state = getattr(type(layer), "get_state", None), getattr(type(layer), "set_state", None)
    return callable(get_state) and callable(set_state) and _needs(get_state) == 1 and _needs(set_state) == 2


def _needs(function: Any) -> int:
    parameters = inspect.signature(function).parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.default is inspect.Parameter.empty and p.kind in kinds for p in parameters)


def place(path: Path) -> str:
    """Name a layer in a message."""
    return ".".join(map(str, path[1:])) or "the outermost layer"
