"""How much memory the parts of a trainer take, without keeping any of them alive."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from typing import Any

Live = Any  # modules, optimizers, buffers: known by their face, so that nothing is imported for them


class MemoryMonitor:
    """The bytes of the objects it was shown; it holds them weakly, so that it never keeps one in memory."""

    def __init__(self) -> None:
        self._watched: dict[str, weakref.ref[Live]] = {}

    def watch(self, name: str, thing: Live) -> bool:
        """Count an object from now on; tell whether it can be held weakly."""
        try:
            self._watched[name] = weakref.ref(thing)
        except TypeError:  # a list, a mapping, a class with slots
            return False
        return True

    def forget(self) -> None:
        """Count nothing any more."""
        self._watched.clear()

    def sizes(self) -> dict[str, int]:
        """Return the bytes of each object that is still there."""
        found: dict[str, int] = {}
        for name, reference in list(self._watched.items()):
            thing = reference()
            size = None if thing is None else bytes_of(thing)
            if size is not None:
                found[name] = size
        return found


def bytes_of(thing: Live) -> int | None:
    """Return the bytes of a module, a buffer, an optimizer or a tensor; None if they cannot be told.

    Of a module its parameters and buffers are counted, of an optimizer what its ``state_dict`` holds.
    """
    if callable(getattr(thing, "memory_bytes", None)):
        return int(thing.memory_bytes())
    if callable(getattr(thing, "parameters", None)) and callable(getattr(thing, "buffers", None)):
        return _sum([*thing.parameters(), *thing.buffers()])
    size = _size(thing)
    if size is None and isinstance(thing, Mapping | list | tuple):
        return _sum(thing.values() if isinstance(thing, Mapping) else thing)
    if size is None and callable(getattr(thing, "state_dict", None)):
        return _sum([thing.state_dict()])
    return size


def _sum(things: Iterable[Live]) -> int:
    total = 0
    for thing in things:
        if isinstance(thing, Mapping | list | tuple):
            total += _sum(thing.values() if isinstance(thing, Mapping) else thing)
        else:
            total += _size(thing) or 0
    return total


def _size(thing: Live) -> int | None:
    if hasattr(thing, "numel") and hasattr(thing, "element_size"):
        return int(thing.numel() * thing.element_size())
    size = getattr(thing, "nbytes", None)
    return int(size) if isinstance(size, int) else None
