"""Numbers of a trainer that are worth a row now and then: its experience, and the settings in force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from hookloop.rl.experience import Experience

MEANS = ("rewards", "values", "returns", "advantages")


def experience_figures(experience: Experience) -> dict[str, float]:
    """Return means over the transitions of an epoch, and how much of the returns the values explain."""
    steps = experience.steps
    if not steps:
        return {}
    arrays = {name: experience.arrays[name][:steps] for name in (*MEANS, "valid")}
    valid = arrays.pop("valid")
    if not valid.all():
        arrays = {name: column[valid] for name, column in arrays.items()}
    found = {f"{name}_mean": float(column.mean()) for name, column in arrays.items()}
    spread = float(arrays["returns"].var())
    if spread > 0:
        found["explained_variance"] = 1.0 - float(np.subtract(arrays["returns"], arrays["values"]).var()) / spread
    return found


class Named(Protocol):
    """A loss, as far as its numbers are looked at."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...


class Hyperparameters:
    """The numbers in force that training follows and a schedule may change, by path."""

    def __init__(self, optimizer: object, losses: Sequence[Named]) -> None:
        owners: dict[str, object] = {"optimizer": optimizer, **{f"losses/{loss.name}": loss for loss in losses}}
        # Looking for them takes longer than reading them, and which there are does not change.
        self._places = [(f"{path}/{name}", owner, name) for path, owner in owners.items() for name in numbers_of(owner)]

    def read(self) -> dict[str, float]:
        """Return their values now."""
        return {path: getattr(owner, name) for path, owner, name in self._places}


def numbers_of(owner: object) -> Mapping[str, float]:
    """Return the attributes of a part that are numbers, which is what a schedule can set."""
    found = {name: getattr(owner, name, None) for name in dir(owner) if not name.startswith("_")}
    return {name: value for name, value in found.items() if is_number(value)}  # type: ignore[misc]  # is_number tells


def is_number(value: object) -> bool:
    """Tell whether a value is a number and not a truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool)
