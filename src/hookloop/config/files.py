"""Configuration files: YAML, TOML and JSON, read by safe loaders into plain mappings."""

from __future__ import annotations

import json
import os
import re
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
    if not path.is_file():
        raise ConfigError(f"There is no file {path}.")
    if path.stat().st_size > MOST_BYTES:
        raise ConfigError(f"{path} is larger than {MOST_BYTES >> 20} MiB; a configuration is not.")
    try:
        read = reader(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError) as error:  # every reader's own error is one of the two
        raise ConfigError(f"{path} cannot be read: {error}") from error
    except RecursionError as error:
        raise ConfigError(f"{path} cannot be read: it is nested too deeply.") from error
    if not isinstance(read, dict):
        raise ConfigError(f"{path} must hold a mapping at its top, got {type(read).__name__}.")
    return cast("dict[str, Plain]", read)


def write_config(path: str | Path, config: Mapping[str, Plain]) -> None:
    """Write a mapping to a ``.json`` file, whole or not at all."""
    path = Path(path)
    if path.suffix.lower() != ".json":
        raise ConfigError(f"A configuration is written as JSON: the name of {path} must end in .json.")
    part = path.with_name(f"{path.name}.part")
    part.write_text(json.dumps(config, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    os.replace(part, path)


class _StrictLoader(yaml.SafeLoader):
    """YAML as people expect it: no tags for objects, no keys that replace each other, 'on' is a word, 1e-4 a number."""


_TAG = "tag:yaml.org,2002:"
_MERGE, _BOOL, _FLOAT = f"{_TAG}merge", f"{_TAG}bool", f"{_TAG}float"


def _strict_mapping(loader: _StrictLoader, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Plain]:
    seen: set[str] = set()
    for key_node, _ in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise ValueError(f"line {key_node.start_mark.line + 1} has a key that is no text")  # noqa: TRY004  # the file's fault
        key = cast("str", key_node.value)
        if key in seen and key_node.tag != _MERGE:
            raise ValueError(f"the key {key!r} stands twice in one mapping (line {key_node.start_mark.line + 1})")
        seen.add(key)
    return yaml.SafeLoader.construct_mapping(loader, node, deep=True)


# YAML 1.1 takes on, off, yes and no for truth values, and 1e-4 for a text.
_StrictLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _BOOL]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_add_resolver = cast("Any", _StrictLoader).add_implicit_resolver
_add_resolver(_BOOL, re.compile(r"^(?:true|false|True|False|TRUE|FALSE)$"), list("tfTF"))
_add_resolver(_FLOAT, re.compile(r"^[-+]?[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789"))
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
            raise ValueError(f"the key {key!r} stands twice in one mapping")
        found[key] = value
    return found


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


_READERS: Mapping[str, Callable[[str], Plain]] = {
    ".yaml": _read_yaml,
    ".yml": _read_yaml,
    ".toml": tomllib.loads,
    ".json": _read_json,
}
