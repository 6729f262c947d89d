"""Randomness of a run: where it begins, where workers draw from, and what is refused for the sake of equal bits."""

from __future__ import annotations

import random
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from hookloop.core import derive_seed
from hookloop.core.global_random import seed_global_random

Plain = Any


def set_seed(seed: int) -> None:
    """Let the random streams that every program has begin where the seed says: Python's, numpy's and torch's."""
    seed_global_random(derive_seed(seed, "global"))


def generator(seed: int, *names: object) -> torch.Generator:
    """Return a random stream of its own: a function of the seed and the names, never of who drew before."""
    return torch.Generator().manual_seed(derive_seed(seed, *names))


@contextmanager
def deterministic_mode(wanted: bool = True) -> Generator[None]:
    """Refuse operations whose results differ from run to run, for the length of a ``with`` block."""
    if not wanted:  # to ask for the mode that is there already would import the compiler
        yield
        return
    before = torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.benchmark
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0])
        torch.backends.cudnn.benchmark = before[1]


class PrivateStreams:
    """Random streams that take the place of the global ones for the length of a ``with`` block, again and again.

    Code that draws from the global streams inside then neither sees nor moves those of the training outside.
    """

    def __init__(self, seed: int) -> None:
        outer = _streams()
        seed_global_random(seed)
        self._inner = _streams()
        self._outer = outer
        _set_streams(outer)

    def __enter__(self) -> None:
        self._outer = _streams()
        _set_streams(self._inner)

    def __exit__(self, *_: object) -> None:
        self._inner = _streams()
        _set_streams(self._outer)


def _streams() -> tuple[Plain, Plain, torch.Tensor]:
    return random.getstate(), np.random.get_state(), torch.get_rng_state()


def _set_streams(streams: tuple[Plain, Plain, torch.Tensor]) -> None:
    random.setstate(streams[0])
    np.random.set_state(streams[1])
    torch.set_rng_state(streams[2])
