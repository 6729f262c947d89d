"""Which process of a run this is, and how what changes training is decided: on main, for all."""

from __future__ import annotations

from typing import Protocol, TypeVar

T = TypeVar("T")


class Ranks(Protocol):
    """The processes of one run. Every rank calls ``broadcast`` and ``gather`` at the same points."""

    @property
    def rank(self) -> int:
        """This process; 0 is main."""
        ...

    @property
    def world_size(self) -> int:
        """How many processes there are."""
        ...

    def broadcast(self, value: T) -> T:
        """Return main's value on every rank."""
        ...

    def gather(self, value: T) -> list[T]:
        """Return the values of all ranks, in their order, on every rank."""
        ...


class SingleProcess:
    """A run of one process: it is main, and decides alone."""

    rank = 0
    world_size = 1

    def broadcast(self, value: T) -> T:
        """Return the value."""
        return value

    def gather(self, value: T) -> list[T]:
        """Return the value, alone."""
        return [value]
