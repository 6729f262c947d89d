"""Configuration files: YAML, TOML and JSON, read by safe loaders into plain mappings."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any, NoReturn, cast

import yaml

from hookloop.errors import ConfigError

Plain = Any

MOST_BYTES = 1 << 20  # a configuration is written by people


def read_config(path: str | Path) -> dict[str, Plain]:
    """Read a mapping from a ``.yaml``, ``.toml`` or ``.json`` file; nothing in it is ever executed."""
    path = Path(path)
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise ConfigError(f"{path} is no configuration: its name must end in {', '.join(sorted(_READERS))}.")
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ConfigError(f"{path} is larger than {MOST_BYTES >> 20} MiB; a configuration is not.")
        read = reader(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"There is no file {path}.") from error
    except (yaml.YAMLError, tomllib.TOMLDecodeError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    if not isinstance(read, dict):
        raise ConfigError(f"{path} must hold a mapping at its top, got {type(read).__name__}.")
    return cast("dict[str, Plain]", read)


class _StrictLoader(yaml.SafeLoader):
    """YAML without tags for objects, and without keys that silently replace each other."""


def _strict_mapping(loader: _StrictLoader, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Plain]:
    seen: set[Hashable] = set()
    for key_node, _ in node.value:
        key = cast("Hashable", cast("Any", loader).construct_object(key_node, deep=True))  # yaml has no types
        if key in seen:
            raise ConfigError(f"The key {key!r} stands twice in one mapping (line {key_node.start_mark.line + 1}).")
        seen.add(key)
    return yaml.SafeLoader.construct_mapping(loader, node, deep=True)


_StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _strict_mapping)


def _read_yaml(text: str) -> Plain:
    # A SafeLoader: only plain data comes out of it.
    return yaml.load(text, Loader=_StrictLoader)


def _read_json(text: str) -> Plain:
    return json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_refuse_constant)


def _without_repeats(pairs: list[tuple[str, Plain]]) -> dict[str, Plain]:
    found: dict[str, Plain] = {}
    for key, value in pairs:
        if key in found:
            raise ConfigError(f"The key {key!r} stands twice in one mapping.")
        found[key] = value
    return found


def _refuse_constant(word: str) -> NoReturn:
    raise ConfigError(f"{word} is not JSON.")


_READERS: Mapping[str, Callable[[str], Plain]] = {
    ".yaml": _read_yaml,
    ".yml": _read_yaml,
    ".toml": tomllib.loads,
    ".json": _read_json,
}
