"""Which process of a run this is, and how what changes training is decided: on main, for all."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Tensor = Any  # of torch; the core never looks inside


class Ranks(Protocol):
    """The processes of one run. Every rank calls ``broadcast``, ``gather`` and ``average`` at the same points.

    Values are plain data as JSON knows them, or bytes.
    """

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

    def average(self, tensor: Tensor) -> None:
        """Replace a tensor, in place, by its mean over all ranks: the same bits on every rank."""
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

    def average(self, tensor: Tensor) -> None:
        """Leave the tensor as it is: it is the mean of one."""
