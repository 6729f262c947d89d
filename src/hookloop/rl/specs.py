"""What an environment shows and what it takes: shapes and dtypes as plain values, known to no library but numpy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from hookloop.errors import HookloopError

Array: TypeAlias = np.ndarray
"""A numpy array; its shape and dtype are told by the spec it belongs to."""

Observations: TypeAlias = Array | dict[str, Array]
"""One batch of observations: an array [N, ...], or arrays by key."""

ActionKind: TypeAlias = Literal["int64", "float32"]

SINGLE = "array"
"""The key under which the only array of an observation that is no dict is listed."""


class SpecError(HookloopError, ValueError):
    """A spec that describes nothing an environment could show or take."""


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """The shape and dtype of one array, for one environment and one step.

    Args:
        shape: Without the axis of environments.
        dtype: The name of a numpy dtype, such as ``"float32"``.
        num_values: For a categorical observation: its entries are whole numbers from 0 to below this.
            A hint for encoders; two specs are equal without it.
    """

    shape: tuple[int, ...]
    dtype: str
    num_values: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if any(size < 0 for size in self.shape):
            raise SpecError(f"A shape has no negative sizes, got {self.shape}.")
        try:
            name = np.dtype(self.dtype).name
        except TypeError as error:
            raise SpecError(f"{self.dtype!r} is no numpy dtype; use a name such as 'float32' or 'uint8'.") from error
        if name != self.dtype:
            raise SpecError(f"A dtype goes by its full name here: write {name!r} for {self.dtype!r}.")

    @property
    def size(self) -> int:
        """The number of entries."""
        return math.prod(self.shape)

    @property
    def is_float(self) -> bool:
        """Whether the entries are floating point numbers."""
        return np.dtype(self.dtype).kind == "f"

    def zeros(self, num_envs: int) -> Array:
        """Allocate an array [N, ...] of zeros."""
        return np.zeros((num_envs, *self.shape), dtype=self.dtype)


@dataclass(frozen=True, slots=True)
class ObservationSpec:
    """What one observation is made of: one array, or several by key.

    Nested dicts are flat here, with keys joined by ``/``.

    Args:
        arrays: The arrays by key; a single array stands under the key ``"array"``.
        is_dict: Whether observations are dicts. Use ``ObservationSpec.single`` for those that are not.
    """

    arrays: Mapping[str, ArraySpec]
    is_dict: bool = True

    def __post_init__(self) -> None:
        if not self.is_dict and list(self.arrays) != [SINGLE]:
            raise SpecError(f"An observation that is no dict is one array, got the keys {sorted(self.arrays)}.")
        if not self.arrays:
            raise SpecError("An observation needs at least one array, got none.")

    @classmethod
    def single(cls, array: ArraySpec) -> ObservationSpec:
        """Describe observations that are one array."""
        return cls({SINGLE: array}, is_dict=False)

    @property
    def array(self) -> ArraySpec:
        """The only array; an error if observations are dicts."""
        if self.is_dict:
            raise SpecError(f"These observations are dicts with the keys {sorted(self.arrays)}; use .arrays[key].")
        return self.arrays[SINGLE]

    def zeros(self, num_envs: int) -> Observations:
        """Allocate observations [N, ...] of zeros."""
        return self.joined(spec.zeros(num_envs) for spec in self.arrays.values())

    def joined(self, leaves: Iterable[Array]) -> Observations:
        """Put arrays, in the order of ``arrays``, into the form of an observation."""
        by_key = dict(zip(self.arrays, leaves, strict=True))
        return by_key if self.is_dict else by_key[SINGLE]


@dataclass(frozen=True, slots=True)
class DiscreteActions:
    """One choice out of ``n``, numbered from 0."""

    n: int

    def __post_init__(self) -> None:
        if self.n < 1:
            raise SpecError(f"There must be at least one action to choose from, got n={self.n}.")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one environment's action."""
        return ()

    @property
    def dtype(self) -> ActionKind:
        """The dtype of an action array."""
        return "int64"

    @property
    def num_choices(self) -> int:
        """The width of an action mask."""
        return self.n


@dataclass(frozen=True, slots=True)
class MultiDiscreteActions:
    """Several choices at once, the i-th out of ``nvec[i]``, each numbered from 0.

    A mask over them is flat: the choices of the first, then those of the second, and so on.
    """

    nvec: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.nvec or min(self.nvec) < 1:
            raise SpecError(f"Every one of the choices needs at least one option, got nvec={self.nvec}.")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one environment's action."""
        return (len(self.nvec),)

    @property
    def dtype(self) -> ActionKind:
        """The dtype of an action array."""
        return "int64"

    @property
    def num_choices(self) -> int:
        """The width of an action mask."""
        return sum(self.nvec)


@dataclass(frozen=True, slots=True)
class ContinuousActions:
    """Real numbers in a box; ``low`` and ``high`` hold one bound per entry, row by row, and may be infinite."""

    shape: tuple[int, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        size = math.prod(self.shape)
        if len(self.low) != size or len(self.high) != size:
            raise SpecError(
                f"Actions of shape {self.shape} need {size} bounds on either side, "
                f"got {len(self.low)} low and {len(self.high)} high ones."
            )
        if not all(low <= high for low, high in zip(self.low, self.high, strict=True)):
            raise SpecError(f"No low bound may be above its high bound, got low={self.low}, high={self.high}.")

    @classmethod
    def between(cls, low: Array, high: Array) -> ContinuousActions:
        """Describe actions between two arrays of bounds."""
        flat_low, flat_high = np.ravel(low).tolist(), np.ravel(high).tolist()
        return cls(tuple(np.shape(low)), tuple(map(float, flat_low)), tuple(map(float, flat_high)))

    @property
    def dtype(self) -> ActionKind:
        """The dtype of an action array."""
        return "float32"

    def bounds(self, dtype: str = "float32") -> tuple[Array, Array]:
        """Return the low and the high bounds as arrays of ``shape``."""
        low, high = np.array(self.low, dtype=dtype), np.array(self.high, dtype=dtype)
        return low.reshape(self.shape), high.reshape(self.shape)


ActionSpec: TypeAlias = DiscreteActions | MultiDiscreteActions | ContinuousActions
"""What an environment takes."""
