"""What runs in a Ray actor: it makes a performer and computes tasks with the weights that each of them names."""

from __future__ import annotations

import os
import pickle
import time
from typing import Any

import numpy as np
import ray
import torch

from hookloop.pools.packing import empty, pack, unpack
from hookloop.pools.protocol import Performer

NO_WEIGHTS = -1
Parcel = np.ndarray
"""A packed value; Ray brings arrays from one process to another without pickling what is in them."""


class RayWorker:
    """One worker, seen from inside. Ray makes it an actor, whose methods are carried out in the order of the calls."""

    def __init__(self) -> None:
        self._performer: Performer | None = None
        self._version = NO_WEIGHTS

    def begin(self, make: bytes) -> int:
        """Make the performer; return the number of this process.

        Args:
            make: The pickled function that makes it.
        """
        torch.set_num_threads(1)
        self._performer = pickle.loads(make)()
        return os.getpid()

    def perform(self, version: int, weights: list[Any], parcel: Parcel) -> Parcel:
        """Compute a task; return the version of the weights, the seconds, and the value.

        Args:
            version: Of the weights to compute with.
            weights: A reference to them. In a list, so that they are fetched only where they are not known yet.
            parcel: The payload.
        """
        # After an exception nobody knows what state the performer is in: no task is computed here any more.
        performer, self._performer = self._performer, None
        assert performer is not None
        if version != self._version:
            performer.take_weights(version, opened(ray.get(weights[0])))
            self._version = version
        payload = opened(parcel)
        started = time.perf_counter()
        value = performer.perform(payload)
        answer = parcel_of((version, time.perf_counter() - started, value))
        self._performer = performer
        return answer

    def end(self) -> None:
        """Release what the performer holds."""
        if self._performer is not None:
            self._performer.close()


def parcel_of(value: Any) -> Parcel:
    """Return a copy of a value, packed."""
    return np.frombuffer(b"".join(pack(value)), np.uint8)


def opened(parcel: Parcel) -> Any:
    """Return the value of a parcel, in memory of its own: Ray's is shared, and may not be written to."""
    content = empty(parcel.nbytes)
    content[:] = parcel.data
    return unpack(content)
