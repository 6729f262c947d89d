"""Data in two parts, and what a model for them must know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class DataForm:
    """What a model must know of data: enough to build it where the data are not."""

    classes: int
    """How many answers there are to choose from."""
    image_shape: tuple[int, int, int] | None = None
    """Channels, height and width, if the samples are images."""
    block_size: int | None = None
    """Symbols in a sample, if the samples are sequences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split(DataForm):
    """Training and validation data."""

    train: Any
    val: Any
