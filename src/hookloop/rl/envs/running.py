"""Mean and variance of data that arrives in batches, in one pass and without storing it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hookloop.rl.envs.errors import EnvStateError
from hookloop.rl.specs import Array

_TINY_VARIANCE = 1e-8


class RunningStatistics:
    """Mean and variance, per entry, of all rows seen so far; in float64, whatever the data.

    Batches are joined by the formula of Chan, Golub and LeVeque (1979), which does not cancel as sums of squares do.
    """

    def __init__(self, shape: tuple[int, ...] = ()) -> None:
        self.count = 0
        self.mean = np.zeros(shape, dtype=np.float64)
        self._squares = np.zeros(shape, dtype=np.float64)
        self._batch_mean = np.zeros(shape, dtype=np.float64)
        self._batch_squares = np.zeros(shape, dtype=np.float64)
        self._centred = np.zeros((0, *shape), dtype=np.float64)

    @property
    def variance(self) -> Array:
        """The mean squared distance from the mean; zero before there are two rows."""
        return self._squares / max(self.count, 1)

    def scale(self) -> Array:
        """Return the standard deviation, and 1 wherever the data has not varied yet and so has no scale."""
        variance = self.variance
        return np.sqrt(np.where(variance > _TINY_VARIANCE, variance, 1.0))

    def update(self, rows: Array) -> None:
        """Take in a batch [rows, ...]."""
        num_rows = len(rows)
        if num_rows == 0:
            return
        if len(self._centred) < num_rows:
            self._centred = np.zeros((num_rows, *self.mean.shape), dtype=np.float64)
        centred = self._centred[:num_rows]
        np.add.reduce(rows, axis=0, dtype=np.float64, out=self._batch_mean)
        self._batch_mean /= num_rows
        np.subtract(rows, self._batch_mean, out=centred)
        np.square(centred, out=centred)
        np.add.reduce(centred, axis=0, out=self._batch_squares)
        self._join(num_rows, self._batch_mean, self._batch_squares)

    def merge(self, other: RunningStatistics) -> None:
        """Take in all that another one has seen, of another rank for instance."""
        if other.count:
            self._join(other.count, other.mean.copy(), other._squares.copy())

    def state_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {"count": self.count, "mean": self.mean.copy(), "squares": self._squares.copy()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from saved statistics."""
        for name, array in (("mean", self.mean), ("squares", self._squares)):
            saved = np.asarray(state[name])
            if saved.shape != array.shape:
                raise EnvStateError(
                    f"The saved statistics are of shape {saved.shape}, these of shape {array.shape}. "
                    "Load the statistics of the same environment."
                )
            np.copyto(array, saved)
        self.count = int(state["count"])

    def _join(self, count: int, mean: Array, squares: Array) -> None:
        total = self.count + count
        mean -= self.mean
        self._squares += squares
        self._squares += np.square(mean) * (self.count * count / total)
        mean *= count / total
        self.mean += mean
        self.count = total


class SharedStatistics(RunningStatistics):
    """Statistics that several count for: each goes on from the same, and keeps apart what it has added itself."""

    def __init__(self, shape: tuple[int, ...] = ()) -> None:
        super().__init__(shape)
        self.added = RunningStatistics(shape)

    def begin(self, state: Mapping[str, Any]) -> None:
        """Go on from what all have counted; nothing is added yet."""
        self.load_state_dict(state)
        self.added = RunningStatistics(self.mean.shape)

    def _join(self, count: int, mean: Array, squares: Array) -> None:
        self.added._join(count, mean.copy(), squares)  # first: joining spoils the mean it is given
        super()._join(count, mean, squares)
