"""Overrides: ``a.b=c`` on typed settings, with the origin of every value.

Rules, few enough to remember: a value stays a text unless it starts with ``[`` or ``{`` or is ``null``; the
setting's type turns it into a number or a truth value. Setting a ``kind`` clears its node first. A text for settings
that have a ``name`` is their name: ``game=othello`` is ``game.name=othello``. Keys of mappings may be new; names of
settings may not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from hookloop.config.settings import RunSettings
from hookloop.errors import ConfigError, did_you_mean

Plain = Any
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Override:
    """One ``path=value``, as it was written."""

    path: tuple[str, ...]
    value: Plain
    text: str

    @classmethod
    def parse(cls, text: str) -> Override:
        """Read ``a.b=c``."""
        path, equals, value = text.partition("=")
        if not equals or not path or not all(path.split(".")):
            raise ConfigError(f"{text!r} is no override; write NAME=VALUE, for example env.num_envs=16.")
        return cls(tuple(path.split(".")), _value(value, text), text)


def apply_overrides(model: Model, overrides: Sequence[str], *, what: str = "the recipe") -> Model:
    """Return the settings with the overrides applied, the last of a path winning, checked as a whole."""
    dumped = model.model_dump(mode="python")
    for override in map(Override.parse, overrides):
        _set(dumped, _completed(override, dumped), what)
    try:
        return type(model).model_validate(dumped)
    except ValidationError as error:
        raise ConfigError(_in_words(error, dumped, what)) from error


def origins(
    model: BaseModel, given: BaseModel, overrides: Sequence[str], *, recipe: str
) -> dict[str, tuple[Plain, str]]:
    """Return every value of ``model`` by its path, and where it comes from: a default, the recipe, or an override.

    ``given`` is what the recipe returned, before the overrides.
    """
    by_recipe = {path for path, _, is_set in _leaves(given, ()) if is_set}
    dumped = model.model_dump(mode="python")
    given_last_first = [_completed(Override.parse(text), dumped) for text in reversed(overrides)]
    found: dict[str, tuple[Plain, str]] = {}
    for path, value, _ in _leaves(model, ()):
        override = next((o for o in given_last_first if path[: len(o.path)] == o.path), None)
        origin = f"override {override.text}" if override else (f"recipe {recipe}" if path in by_recipe else "default")
        found[".".join(path)] = value, origin
    return found


def _value(text: str, whole: str) -> Plain:
    if text == "null":
        return None
    if text[:1] in ("[", "{"):
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            raise ConfigError(f"In {whole!r} the value {text!r} is no JSON: {error}.") from error
    return text


def _completed(override: Override, settings: Mapping[str, Plain]) -> Override:
    """Return an override whose path leads to a name, where it gives a text for settings that have one."""
    node: Plain = settings
    for key in override.path:
        node = cast("dict[str, Plain]", node).get(key) if isinstance(node, dict) else None
    if isinstance(override.value, str) and isinstance(node, dict) and "name" in node:
        return replace(override, path=(*override.path, "name"))
    return override


def _set(settings: dict[str, Plain], override: Override, what: str) -> None:
    node = settings
    for depth, key in enumerate(override.path[:-1]):
        inner = node.get(key)
        if not isinstance(inner, dict):
            raise _unknown(settings, override.path[: depth + 1], what)
        node = cast("dict[str, Plain]", inner)
    if override.path[-1] == "kind":
        node.clear()  # another variant has settings of its own
    node[override.path[-1]] = override.value


def _unknown(settings: Mapping[str, Plain], path: tuple[str, ...], what: str) -> ConfigError:
    name = ".".join(path)
    return ConfigError(f"{name} is not a setting of {what}.{did_you_mean(name, _paths(settings, ()))}")


def _paths(settings: Mapping[str, Plain], prefix: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    for key, value in settings.items():
        path = (*prefix, str(key))
        found.append(".".join(path))
        if isinstance(value, dict):
            found += _paths(cast("dict[str, Plain]", value), path)
    return found


def _in_words(error: ValidationError, settings: Mapping[str, Plain], what: str) -> str:
    lines: list[str] = []
    for mistake in error.errors():
        path = _place(mistake["loc"], settings)
        if mistake["type"] == "extra_forbidden":
            lines.append(f"{path} is not a setting of {what}.{did_you_mean(path, set(_paths(settings, ())) - {path})}")
        elif mistake["type"] == "value_error" and isinstance(mistake["input"], Mapping):
            # Settings that do not fit together: the message names them.
            within = f"{path}: " if path else ""
            lines.append(f"{within}{mistake['msg'].removeprefix('Value error, ').rstrip('.')}.")
        else:
            lines.append(f"{path} is {mistake['input']!r}: {mistake['msg'].lower()}.")
    return "\n".join(lines)


def _place(parts: Sequence[int | str], settings: Mapping[str, Plain]) -> str:
    """Return the path of a mistake as a person writes it: without the kinds that pydantic puts between."""
    node: Plain = settings
    path: list[str] = []
    for part in parts:
        if isinstance(node, dict) and part not in node and cast("dict[str, Plain]", node).get("kind") == part:
            continue
        path.append(str(part))
        node = cast("dict[str, Plain]", node).get(str(part)) if isinstance(node, dict) else None
    return ".".join(path)


def _leaves(model: BaseModel, prefix: tuple[str, ...]) -> list[tuple[tuple[str, ...], Plain, bool]]:
    found: list[tuple[tuple[str, ...], Plain, bool]] = []
    # What a workload has of its own comes first: it is what people look for.
    for name in sorted(type(model).model_fields, key=lambda name: name in RunSettings.model_fields):
        value: Plain = getattr(model, name)
        path = (*prefix, name)
        if isinstance(value, BaseModel):
            found += _leaves(value, path)
        elif isinstance(value, dict) and value and all(isinstance(v, BaseModel) for v in cast("Any", value).values()):
            for key, item in cast("dict[str, BaseModel]", value).items():
                found += _leaves(item, (*path, key))
        else:
            found.append((path, cast("Plain", value), name in model.model_fields_set))
    return found
