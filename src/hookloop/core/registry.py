"""The hooks that can be named in a configuration: registered here, or by entry point, never by import path.

A plugin declares ``[project.entry-points."hookloop.hooks"]``. Installing one makes a name available; it does
nothing until a configuration or a program uses that name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from hookloop.errors import ConfigError, NameClashError, UnknownNameError

GROUP = "hookloop.hooks"

HookType = Callable[..., object]
T = TypeVar("T", bound=HookType)

_registered: dict[str, HookType] = {}


@dataclass(frozen=True, slots=True)
class HookSource:
    """A name that a configuration may use, and where it comes from."""

    name: str
    origin: str
    target: str
    load: Callable[[], HookType]


def register_hook_type(name: str) -> Callable[[T], T]:
    """Make a hook class (or a function that builds a hook) available to configurations as ``name``."""

    def register(hook_type: T) -> T:
        if name in _registered and _registered[name] is not hook_type:
            raise NameClashError(f"The hook name {name!r} is taken by {_target(_registered[name])}; choose another.")
        _registered[name] = hook_type
        return hook_type

    return register


def hook_sources() -> dict[str, HookSource]:
    """Return everything a configuration can name; nothing is imported by looking."""
    found: dict[str, HookSource] = {}
    for source in (*map(_from_entry_point, entry_points(group=GROUP)), *map(_from_program, _registered)):
        other = found.get(source.name)
        is_same = other is None or other.target == source.target
        found[source.name] = source if is_same or other is None else _clash(other, source)
    return dict(sorted(found.items()))


def find_hook_type(name: str) -> HookType:
    """Return the hook class a configuration calls ``name``."""
    sources = hook_sources()
    if name in sources:
        return sources[name].load()
    if any(mark in name for mark in ":./\\"):
        raise ConfigError(
            f"{name!r} looks like an import path; a configuration names hooks by their registered name, one of "
            f"{', '.join(sources)}. To add yours, decorate it with @register_hook_type or declare an entry point in "
            f"the group {GROUP!r}."
        )
    raise UnknownNameError("hook called", name, sources)


def name_of_hook_type(hook_type: type) -> str | None:
    """Return the name under which a configuration can ask for this class; None if it has none."""
    target = _target(hook_type)
    return next((source.name for source in hook_sources().values() if source.target == target), None)


def _from_entry_point(point: EntryPoint) -> HookSource:
    origin = point.dist.name if point.dist is not None else "unknown"

    def load() -> HookType:
        try:
            return point.load()
        except (ImportError, AttributeError) as error:
            raise ConfigError(f"The hook {point.name!r} of {origin} cannot be imported: {error}") from error

    return HookSource(point.name, origin, point.value, load)


def _from_program(name: str) -> HookSource:
    hook_type = _registered[name]
    return HookSource(name, "this program", _target(hook_type), lambda: hook_type)


def _clash(first: HookSource, second: HookSource) -> HookSource:
    """Stand in for a name that two claim: it can be listed, not used, so that nobody changes what a name means."""

    def refuse() -> HookType:
        raise NameClashError(
            f"The hook name {first.name!r} is claimed by {first.origin} ({first.target}) and by {second.origin} "
            f"({second.target}); uninstall one, or register yours under another name."
        )

    return HookSource(first.name, f"{first.origin} and {second.origin}", "", refuse)


def _target(hook_type: HookType) -> str:
    return f"{hook_type.__module__}:{getattr(hook_type, '__qualname__', hook_type)}"
