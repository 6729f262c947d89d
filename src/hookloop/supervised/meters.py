"""Means over an epoch that cost training nothing: values are kept as they are and read many at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

Plain = Any

READ_AT_ONCE = 256


class Meter:
    """A weighted mean; its bits do not depend on when it is looked at."""

    __slots__ = ("_values", "_weights", "total", "weight")

    def __init__(self) -> None:
        self.total = 0.0
        self.weight = 0.0
        self._values: list[Tensor] = []
        self._weights: list[float] = []

    def add(self, value: Tensor, weight: float = 1) -> None:
        """Take a value; it is not read yet."""
        self._values.append(value)
        self._weights.append(weight)
        if len(self._values) == READ_AT_ONCE:
            self._read()

    def add_number(self, value: float, weight: float = 1) -> None:
        """Take a value that has been read already; one meter takes numbers or tensors, not both."""
        self.total += weight * value
        self.weight += weight

    @classmethod
    def of(cls, sums: Iterable[tuple[float, float]]) -> Meter:
        """Return the mean of several means, given what was added up in each."""
        joined = cls()
        for total, weight in sums:
            joined.total += total
            joined.weight += weight
        return joined

    def sums(self) -> tuple[float, float]:
        """Return the weighted sum of the values and the sum of the weights."""
        self._read()
        return self.total, self.weight

    def mean(self) -> float | None:
        """Return the mean so far; None if there is nothing to take it of."""
        self._read()
        return self.total / self.weight if self.weight else None

    def reset(self) -> None:
        """Begin anew."""
        self.__init__()

    def state_dict(self) -> dict[str, Plain]:
        """Return what was added up; a tensor, since it may be no finite number."""
        self._read()
        return {"sums": torch.tensor([self.total, self.weight], dtype=torch.float64)}

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on from there."""
        self.reset()
        self.total, self.weight = saved["sums"].tolist()

    def _read(self) -> None:
        if not self._values:
            return
        # One after the other in double precision: however the values are grouped, the sum is the same.
        for value, weight in zip(torch.stack(self._values).tolist(), self._weights, strict=True):
            self.total += weight * value
            self.weight += weight
        self._values.clear()
        self._weights.clear()
