"""Save and restore any Gymnasium environment by what its layers keep in their attributes.

A layer is a vector environment, a wrapper, an environment, or a plain Python object that one of them holds. Saved
are numbers, texts, containers and arrays of them, and random generators. An attribute that can change and is none of
these, such as the body of a physics engine, is the reason why the environment cannot be saved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode

from hookloop.rl.envs.arrays import Capture
from hookloop.rl.envs.errors import EnvStateError
from hookloop.rl.envs.gymnasium_envs.fixed import fixed_form
from hookloop.rl.envs.gymnasium_envs.tables import Table, build_table, is_table, make_table
from hookloop.rl.envs.gymnasium_envs.walk import Path, Walk, hides_something, own_attributes, place, saves_itself
from hookloop.rl.envs.plain_state import NotPlainError, PlainDecoder, PlainEncoder

WORKER_STATE = "worker_state"
"""The attribute by which an environment in a worker process tells and takes its state; see ``Restorable``."""


@dataclass(slots=True)
class _Found:
    """What a capture has found so far; ``known`` are the ids of layers that were there from the start."""

    known: Set[int]
    reasons: list[str]
    encoder: PlainEncoder = field(default_factory=PlainEncoder)
    tables: dict[str, Any] = field(default_factory=dict)


class EnvLayers:
    """The layers of some environments, and what they looked like when new.

    Create it for environments that were made and reset, and load states into environments at the same point: what is
    the same in all of them, such as functions, is compared with that moment and left alone.
    """

    def __init__(self, roots: Sequence[object]) -> None:
        self._roots = list(roots)
        self._when_new = Walk(self._roots)
        self._fixed: dict[Path, object] = {}
        self._tables: dict[Path, Table] = {}
        known: dict[str, list[Table]] = {}
        for path, layer in self._when_new.layers.items():
            for name, value in own_attributes(layer):
                table = _known_or_new(value, known.setdefault(name, []))
                if table is not None:
                    self._tables[*path, name] = table
                elif not isinstance(value, np.ndarray):
                    self._fixed[*path, name] = fixed_form(value, self._when_new.ids)

    def capture(self) -> Capture:
        """Collect the state of all layers, and the first reason why it is not everything."""
        walk = Walk(self._roots)
        found = _Found(walk.ids.keys() & self._when_new.ids.keys(), walk.differences(self._when_new))
        layers: list[dict[str, Any]] = []
        for path, layer in walk.layers.items():
            record: dict[str, Any] = {}
            if isinstance(layer, AsyncVectorEnv):
                record["workers"] = _capture_workers(layer, found.reasons)
            elif isinstance(layer, gymnasium.Space):
                record["attributes"] = _generators(layer, found.encoder)
            elif saves_itself(layer):
                record["attributes"] = _generators(layer, found.encoder)
                record["own"] = _own_state(layer, found)
            else:
                record["attributes"] = self._plain(path, layer, found)
            if any(record.values()):
                layers.append({"path": list(path), "class": type(layer).__qualname__, **record})
        state = {"layers": layers, "heap": found.encoder.heap, "tables": found.tables}
        return Capture(state, _joined(found.reasons))

    def restore(self, state: Mapping[str, Any]) -> None:
        """Put all layers into a captured state."""
        decoder = PlainDecoder(state["heap"])
        for record in state["layers"]:
            path = tuple(record["path"])
            layer = self._layer_at(path, record["class"])
            for name, data in record.get("attributes", {}).items():
                if isinstance(data, Mapping) and "table" in data:
                    self._restore_table((*path, name), layer, state["tables"], data["table"])
                elif isinstance(data, Mapping) and "member" in data:
                    vars(layer)[name] = _member(vars(layer).get(name), data["member"])
                else:
                    vars(layer)[name] = decoder.decode(data)
            if "own" in record:
                layer.set_state(decoder.decode(record["own"]))
            if "workers" in record:
                layer.set_attr(WORKER_STATE, record["workers"])

    def _plain(self, path: Path, layer: object, found: _Found) -> dict[str, Any]:
        saved: dict[str, Any] = {}
        if hides_something(layer):
            found.reasons.append(f"{type(layer).__qualname__} keeps a part of itself in C or in slots, out of sight")
        for name, value in own_attributes(layer):
            table = self._tables.get((*path, name))
            if table is not None and table.is_unchanged(value):
                saved[name], found.tables[table.digest] = {"table": table.digest}, table.data
                continue
            try:
                saved[name] = found.encoder.encode(value)
            except NotPlainError as error:
                form, when_new = fixed_form(value, found.known), self._fixed.get((*path, name))
                if isinstance(value, Enum) and isinstance(when_new, tuple) and when_new[0] is type(value):
                    saved[name] = {"member": value.name}
                elif form is None or form != when_new:
                    found.reasons.append(f"{type(layer).__qualname__}.{name} holds {error}")
        return saved

    def _restore_table(self, path: Path, layer: object, tables: Mapping[str, Any], digest: str) -> None:
        name = str(path[-1])
        present = self._tables.get(path)
        if present is None or present.digest != digest or not present.is_unchanged(vars(layer).get(name)):
            vars(layer)[name] = build_table(tables[digest])

    def _layer_at(self, path: Path, class_name: str) -> Any:
        found: Any = self._roots
        for step in path:
            parts: Any = found if isinstance(found, list | tuple | dict) else vars(found)
            try:
                found = parts[step]
            except (KeyError, IndexError, TypeError) as error:
                raise EnvStateError(
                    f"The state was saved for an environment with {place(path)} ({class_name}), which is not here. "
                    "Use the same wrappers, in the same order, as the saved run."
                ) from error
        if type(found).__qualname__ != class_name:
            raise EnvStateError(
                f"The state was saved with a {class_name} at {place(path)}, but here stands a "
                f"{type(found).__qualname__}. Use the same environment and wrappers as the saved run."
            )
        return found


def _member(present: object, name: str) -> Enum:
    if not isinstance(present, Enum) or name not in type(present).__members__:
        raise EnvStateError(
            f"The state was saved with the member {name!r} of an Enum, but here stands {present!r}. "
            "Use the same environment and wrappers as the saved run."
        )
    return type(present).__members__[name]


def _generators(layer: object, encoder: PlainEncoder) -> dict[str, Any]:
    kinds = (np.random.Generator, np.random.RandomState)
    return {name: encoder.encode(value) for name, value in vars(layer).items() if isinstance(value, kinds)}


def _own_state(layer: Any, found: _Found) -> Any:
    try:
        return found.encoder.encode(layer.get_state())
    except NotPlainError as error:
        found.reasons.append(f"{type(layer).__qualname__}.get_state() returned {error}")
        return None


def _capture_workers(layer: AsyncVectorEnv, reasons: list[str]) -> list[Any]:
    if layer.autoreset_mode is AutoresetMode.NEXT_STEP:
        reasons.append("AsyncVectorEnv keeps in its workers which environments to reset next")
        return []
    if not all(layer.call("has_wrapper_attr", WORKER_STATE)):
        reasons.append("AsyncVectorEnv runs environments that are not wrapped in Restorable")
        return []
    captured = layer.call(WORKER_STATE)
    reasons.extend(because for _, because in captured if because)
    return [state for state, _ in captured]


def _known_or_new(value: object, known: list[Table]) -> Table | None:
    """Share the table of an earlier environment if it is the same, as it mostly is in environments of one kind."""
    table = next((table for table in known if table.is_unchanged(value)), None)
    if table is None and is_table(value):
        table = make_table(value)
        known.append(table)
    return table


def _joined(reasons: list[str]) -> str:
    if not reasons:
        return ""
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return f"{reasons[0]}{more}; give the environment get_state() and set_state() to save it exactly"
