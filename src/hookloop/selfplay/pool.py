"""Past versions of a network, to play against: the newest ones, and the champion for as long as it is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from hookloop.errors import ConfigError, UnknownNameError

Plain = Any


@dataclass(frozen=True, slots=True)
class Version:
    """A network as it was at a moment of training."""

    name: str
    weights: Mapping[str, Tensor]


class OpponentPool:
    """Keeps versions: first in, first out; a champion stays besides, however old it is.

    Args:
        capacity: How many versions to keep, the champion not counted once it is older than all of them.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ConfigError(f"A pool of opponents keeps at least 1 version, got a capacity of {capacity}.")
        self.capacity = capacity
        self._newest: list[Version] = []
        self._champion: Version | None = None

    def __len__(self) -> int:
        return len(self.versions)

    @property
    def champion(self) -> Version | None:
        """The best version so far; None before there is one."""
        return self._champion

    @property
    def versions(self) -> list[Version]:
        """All that can be played against, the oldest first."""
        is_older = self._champion is not None and self._champion not in self._newest
        return [self._champion, *self._newest] if is_older and self._champion is not None else list(self._newest)

    def add(self, name: str, weights: Mapping[str, Tensor]) -> None:
        """Keep a copy of weights as a version; the oldest goes if there are too many."""
        kept = {key: tensor.detach().clone() for key, tensor in weights.items()}
        self._newest = [version for version in self._newest if version.name != name]
        self._newest.append(Version(name, kept))
        del self._newest[: -self.capacity]

    def crown(self, name: str) -> None:
        """Make a version the champion."""
        known = {version.name: version for version in self.versions}
        if name not in known:
            raise UnknownNameError("version in the pool", name, known)
        self._champion = known[name]

    def sample(self, generator: torch.Generator) -> Version | None:
        """Draw a version, each as likely as any other; None if there is none."""
        versions = self.versions
        return versions[int(torch.randint(len(versions), (), generator=generator))] if versions else None

    def state_dict(self) -> dict[str, Plain]:
        """Return every version with its weights."""
        return {
            "champion": None if self._champion is None else self._champion.name,
            "names": [version.name for version in self.versions],
            "num_newest": len(self._newest),
            "weights": [dict(version.weights) for version in self.versions],
        }

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on with saved versions."""
        versions = [
            Version(name, {key: tensor.clone() for key, tensor in weights.items()})
            for name, weights in zip(saved["names"], saved["weights"], strict=True)
        ]
        self._newest = versions[len(versions) - saved["num_newest"] :]
        self._champion = next((version for version in versions if version.name == saved["champion"]), None)
        del self._newest[: -self.capacity]
