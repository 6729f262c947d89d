"""What is saved of hooks: their own state, the memory of their schedules, and their failures in a row."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from hookloop.core.plain import is_plain, require_plain
from hookloop.errors import HookStateError

if TYPE_CHECKING:
    from hookloop.core.entries import Entry

log = logging.getLogger("hookloop.hooks")

MEMORY_VERSION = 1

Plain = Any


def plain_attributes(hook: object) -> dict[str, Plain]:
    """Return copies of a hook's public instance attributes that are plain data."""
    attributes: Mapping[str, object] = vars(hook) if hasattr(hook, "__dict__") and not hasattr(hook, "__code__") else {}
    return {
        name: copy.deepcopy(value) for name, value in attributes.items() if not name.startswith("_") and is_plain(value)
    }


def save_hooks(entries: Iterable[Entry]) -> dict[str, Plain]:
    """Return everything that must be saved of these hooks, by name."""
    return {"version": MEMORY_VERSION, "hooks": {entry.name: _save(entry) for entry in entries}}


def load_hooks(entries: Mapping[str, Entry], saved: Mapping[str, Plain], *, strict: bool) -> list[str]:
    """Restore hooks by name and return the names that the save does not hold.

    Strict: the names must be the same on both sides, and all differences are listed at once.
    """
    if saved.get("version") != MEMORY_VERSION:
        raise HookStateError(
            f"The saved hooks have version {saved.get('version')!r}; this hookloop reads version {MEMORY_VERSION}."
        )
    found: Mapping[str, Mapping[str, Plain]] = saved["hooks"]
    missing = [name for name in entries if name not in found]
    unexpected = [name for name in found if name not in entries]
    if strict and (missing or unexpected):
        raise HookStateError(_difference(missing, unexpected))
    for name, entry in entries.items():
        if name in found:
            _load(entry, found[name])
    return missing


def _save(entry: Entry) -> dict[str, Plain]:
    saved: dict[str, Plain] = {
        "enabled": entry.is_enabled,
        "schedules": {event: slot.memory() for event, slot in entry.slots.items() if slot.is_conditional},
        "strikes": {event: slot.strikes for event, slot in entry.slots.items() if slot.failed_at == slot.calls},
    }
    own = _own_state(entry)
    if own is not None:
        require_plain(own, f"the state of hook {entry.name!r}")
        saved["state"] = own
    return saved


def _own_state(entry: Entry) -> Plain:
    hook = entry.hook
    state_dict = getattr(hook, "state_dict", None)
    if callable(state_dict):
        return state_dict()
    names: tuple[str, ...] = getattr(hook, "saved", ())
    if names:
        return {name: copy.deepcopy(getattr(hook, name)) for name in names}
    return _changed_attributes(entry) or None


def _changed_attributes(entry: Entry) -> dict[str, Plain]:
    """Return what the hook has learned by itself: plain attributes that differ from registration.

    Attributes that did not change are left to the constructor, so that a changed setting is not undone by a resume.
    """
    now = plain_attributes(entry.hook)
    for name in entry.baseline:
        if name not in now and hasattr(entry.hook, name):
            log.warning(
                "hook %r: %r in its attribute %r cannot be saved and is lost on a resume; give it state_dict",
                entry.name,
                getattr(entry.hook, name),
                name,
            )
    return {
        name: value
        for name, value in now.items()
        if name not in entry.baseline or not _same(value, entry.baseline[name])
    }


def _same(left: Plain, right: Plain) -> bool:
    if hasattr(left, "shape") or hasattr(right, "shape"):
        return type(left) is type(right) and left.shape == right.shape and bool((left == right).all())
    return bool(left == right)


def _load(entry: Entry, saved: Mapping[str, Plain]) -> None:
    entry.is_enabled = saved.get("enabled", True)
    for event, since in saved.get("schedules", {}).items():
        slot = entry.slots.get(event)
        if slot is not None:
            slot.since = dict(since)
            slot.look_ahead()
    for event, strikes in saved.get("strikes", {}).items():
        if event in entry.slots:
            entry.slots[event].strikes = strikes
            entry.slots[event].failed_at = entry.slots[event].calls
    if "state" not in saved:
        return
    load_state_dict = getattr(entry.hook, "load_state_dict", None)
    if callable(load_state_dict):
        load_state_dict(copy.deepcopy(saved["state"]))
        return
    if callable(getattr(entry.hook, "state_dict", None)):
        raise HookStateError(f"Hook {entry.name!r} has state_dict but no load_state_dict; add it to resume.")
    for name, value in saved["state"].items():
        setattr(entry.hook, name, copy.deepcopy(value))


def _difference(missing: list[str], unexpected: list[str]) -> str:
    parts: list[str] = []
    if missing:
        parts.append(f"the save does not hold {', '.join(map(repr, missing))}")
    if unexpected:
        parts.append(f"no hook is named {', '.join(map(repr, unexpected))}")
    return (
        f"The hooks differ from the saved ones: {'; '.join(parts)}. "
        "Register the same hooks under the same names, or load with strict=False."
    )
