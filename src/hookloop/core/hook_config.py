"""Hooks from plain mappings, and back: what a YAML, TOML or JSON file says of hooks.

::

    - use: logging                    a registered name
      args: {frequency: 100}          arguments of its constructor
      schedule: every 10 epochs       and any hook option
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from hookloop.core.options import OPTION_NAMES
from hookloop.core.plain import is_plain
from hookloop.core.registry import HookType, find_hook_type, name_of_hook_type
from hookloop.core.schedules import Schedule
from hookloop.errors import ConfigError, HookloopError, did_you_mean

if TYPE_CHECKING:
    from hookloop.core.entries import Entry
    from hookloop.core.manager import HookManager

Plain = Any

KEYS = ("use", "args", *OPTION_NAMES)


def add_from_config(hooks: HookManager, items: object) -> list[str]:
    """Build and add the hooks a configuration lists; nothing is added if any item is wrong."""
    if not isinstance(items, Sequence) or isinstance(items, str):
        raise ConfigError(f"'hooks' must be a list of mappings such as {{use: logging}}, got {type(items).__name__}.")
    names: list[str] = []
    try:
        built = [_build(index, item) for index, item in enumerate(cast("Sequence[object]", items))]
        for index, (hook, item, options) in enumerate(built):
            with _placed(f"hooks[{index}]", item["use"]):
                names.append(hooks.add_configured(hook, item, **options))
    except ValueError:
        for name in names:
            hooks.remove(name)
        raise
    return names


@contextmanager
def _placed(where: str, use: str) -> Generator[None]:
    """Say where in the configuration an error was made."""
    try:
        yield
    except HookloopError as error:
        error.args = (f"{where} ({use!r}): {error}",)
        raise
    except (ValueError, TypeError) as error:  # from the hook's own constructor
        raise ConfigError(f"{where} ({use!r}): {error}") from error


def to_config(entries: Sequence[Entry]) -> list[dict[str, Plain]]:
    """Return the configuration that recreates these hooks, schedules and overrides included."""
    return [_describe(entry) for entry in entries]


def _build(index: int, item: object) -> tuple[object, dict[str, Plain], dict[str, Plain]]:
    where = f"hooks[{index}]"
    if not isinstance(item, Mapping):
        raise ConfigError(f"{where} must be a mapping such as {{use: logging}}, got {item!r}.")
    given = dict(cast("Mapping[str, Plain]", item))
    for key in given:
        if key not in KEYS:
            raise ConfigError(f"{where} has the key {key!r}, which means nothing there.{did_you_mean(str(key), KEYS)}")
    if not isinstance(given.get("use"), str):
        raise ConfigError(f"{where} needs 'use: NAME' with the name of a hook; run 'hookloop hooks' to list them.")
    with _placed(where, given["use"]):
        hook_type = find_hook_type(given["use"])
    args = given.get("args", {})
    if not isinstance(args, Mapping):
        raise ConfigError(f"{where}.args must be a mapping of the hook's arguments, got {args!r}.")
    arguments = {str(name): value for name, value in cast("Mapping[str, Plain]", args).items()}
    _require_fitting(hook_type, arguments, where, given["use"])
    options = {name: value for name, value in given.items() if name in OPTION_NAMES}
    with _placed(where, given["use"]):
        return hook_type(**copy.deepcopy(arguments)), copy.deepcopy(given), options


def _require_fitting(hook_type: HookType, arguments: Mapping[str, Plain], where: str, use: str) -> None:
    signature = inspect.signature(hook_type)
    takes_any = any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values())
    for name in arguments:
        if name not in signature.parameters and not takes_any:
            raise ConfigError(
                f"{where}.args has {name!r}, which the hook {use!r} does not take."
                f"{did_you_mean(name, signature.parameters)}"
            )
    try:
        signature.bind(**arguments)
    except TypeError as error:
        raise ConfigError(f"{where}.args do not fit the hook {use!r}: {error}; it takes {signature}.") from error


def _describe(entry: Entry) -> dict[str, Plain]:
    if entry.config is not None:
        return {**copy.deepcopy(entry.config), "name": entry.name}
    name = name_of_hook_type(type(entry.hook))
    if name is None:
        raise ConfigError(
            f"Hook {entry.name!r} is a {type(entry.hook).__name__}, which has no registered name; decorate the class "
            "with @register_hook_type('...') so that a configuration can ask for it."
        )
    described: dict[str, Plain] = {"use": name, "name": entry.name}
    args = _arguments(entry)
    if args:
        described["args"] = args
    for option, value in entry.given.items():
        if option != "name" and value is not None:
            described[option] = _as_plain(value, entry.name, option)
    return described


def _arguments(entry: Entry) -> dict[str, Plain]:
    """Return the constructor's arguments, read from the attributes of the same names at registration."""
    found: dict[str, Plain] = {}
    for parameter in inspect.signature(type(entry.hook)).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.name not in entry.baseline:
            if parameter.default is parameter.empty:
                raise ConfigError(
                    f"Hook {entry.name!r} does not keep its argument {parameter.name!r} as plain data in an attribute "
                    "of that name, so it cannot be written to a configuration."
                )
            continue
        value = entry.baseline[parameter.name]
        if value != parameter.default:
            found[parameter.name] = copy.deepcopy(value)
    return found


def _as_plain(value: Plain, hook: str, option: str) -> Plain:
    if isinstance(value, Mapping):
        by_key = cast("Mapping[str, Plain]", value)
        return {key: _as_plain(item, hook, option) for key, item in by_key.items()}
    if isinstance(value, Schedule):
        if any(leaf.is_code for group in value.alternatives() for leaf in group):
            raise ConfigError(f"The schedule of hook {hook!r} asks a function, which cannot be written: '{value}'.")
        return str(value)
    if isinstance(value, tuple | list):
        return list(cast("Sequence[Plain]", value))
    if not is_plain(value):
        raise ConfigError(f"The option {option!r} of hook {hook!r} is {value!r}, which cannot be written.")
    return value
