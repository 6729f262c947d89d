"""How much two sets of data differ: the Jensen-Shannon divergence between what occurs in them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import torch
from torch import Tensor

from hookloop.errors import ConfigError

Plain = Any
Live = Any
Counts = Mapping[int, int]
Level = Literal["none", "warning", "alert"]

BINS = 50
WARNING, ALERT = 0.1, 0.2


def js_divergence(one: Counts, other: Counts) -> float:
    """Return the Jensen-Shannon divergence in bits: 0 if all shares are equal, 1 if nothing occurs in both."""
    totals = sum(one.values()), sum(other.values())
    if not all(totals):
        raise ConfigError("Drift is measured between two sets of data, one of which is empty.")
    parts: list[float] = []
    for value in {**one, **other}:
        p, q = one.get(value, 0) / totals[0], other.get(value, 0) / totals[1]
        middle = (p + q) / 2
        parts += [share / 2 * math.log2(share / middle) for share in (p, q) if share]
    return min(max(math.fsum(parts), 0.0), 1.0)


def drift_level(divergence: float, warning: float = WARNING, alert: float = ALERT) -> Level:
    """Return how serious a divergence is."""
    return "alert" if divergence >= alert else "warning" if divergence >= warning else "none"


def drift_between(one: Live, other: Live, bins: int = BINS) -> dict[str, float]:
    """Return the divergence between two sets of data, part by part: inputs, targets, or the fields of a mapping."""
    reference = Profile(bins)
    reference.add(one)
    return reference.drift_of(reference.like(other))


class Profile:
    """How often values occur in data, part by part.

    Whole numbers are counted as they are. Others are counted in bins of equal width between the least and the largest
    of the first batch; beyond them there is one more on each side, and one for what is no number.

    Args:
        bins: How many there are between the least and the largest value.
    """

    def __init__(self, bins: int = BINS) -> None:
        if isinstance(bins, bool) or not isinstance(bins, int) or bins < 1:
            raise ConfigError(f"bins must be at least 1, got {bins!r}.")
        self.bins = bins
        self.counts: dict[str, dict[int, int]] = {}
        self._ranges: dict[str, tuple[float, float]] = {}

    def add(self, batch: Live) -> None:
        """Count what occurs in a batch, or in a whole set of data that is a tensor, a tuple or a mapping of tensors."""
        for name, values in _parts(batch):
            if not values.numel():
                continue
            counts = self.counts.setdefault(name, {})
            numbers, times = torch.unique(self._numbers(name, values.detach()), return_counts=True)
            for number, count in zip(numbers.tolist(), times.tolist(), strict=True):
                counts[number] = counts.get(number, 0) + count

    def like(self, batch: Live = None) -> Profile:
        """Return a profile with the same bins, of other data."""
        found = Profile(self.bins)
        found._ranges = dict(self._ranges)
        if batch is not None:
            found.add(batch)
        return found

    def drift_of(self, other: Profile) -> dict[str, float]:
        """Return how far other data are from these, for each part that both have."""
        return {
            name: js_divergence(self.counts[name], other.counts[name]) for name in self.counts if name in other.counts
        }

    def state_dict(self) -> dict[str, Plain]:
        """Return what was counted, as plain lists."""
        counts = {name: [list(found), list(found.values())] for name, found in self.counts.items()}
        return {"counts": counts, "ranges": {name: list(found) for name, found in self._ranges.items()}}

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on counting from there."""
        self.counts = {name: dict(zip(*found, strict=True)) for name, found in saved["counts"].items()}
        self._ranges = {name: (low, high) for name, (low, high) in saved["ranges"].items()}

    def _numbers(self, name: str, values: Tensor) -> Tensor:
        """Return each value as a whole number: itself, or its bin."""
        if not values.is_floating_point():
            return values.long()
        values = values.double()
        if name not in self._ranges:
            known = values[values.isfinite()]
            self._ranges[name] = (float(known.min()), float(known.max())) if known.numel() else (0.0, 0.0)
        low, high = self._ranges[name]
        inside = ((values - low) / ((high - low) or 1.0) * self.bins).floor().clamp(0, self.bins - 1)
        places = torch.where(values < low, -1, torch.where(values > high, self.bins, inside))
        return torch.where(values.isnan(), self.bins + 1, places).long()


def _parts(batch: Live) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of a batch by name."""
    if isinstance(batch, Tensor):
        yield "inputs", batch
    elif isinstance(batch, Mapping):
        yield from ((str(name), value) for name, value in batch.items() if isinstance(value, Tensor))
    elif isinstance(batch, tuple | list) and batch:
        *inputs, last = batch
        for number, values in enumerate(inputs):
            if isinstance(values, Tensor):
                yield "inputs" if number == 0 else f"inputs_{number}", values
        if isinstance(last, Tensor):
            yield "targets" if inputs else "inputs", last
