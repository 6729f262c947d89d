"""Checks of what an environment returns: made on the first steps only, so they may be thorough."""

from __future__ import annotations

import numbers

import numpy as np

from hookloop.rl.envs.errors import EnvMismatchError
from hookloop.rl.specs import Array, ArraySpec

_WAY_OUT = "Make the environment return what its spaces declare, or declare what it returns."


def check_batch(field: str, received: object, expected: ArraySpec, *, num_envs: int, who: str) -> None:
    """Refuse a batch whose shape, dtype or values do not fit; the first environment at fault is named."""
    shape = (num_envs, *expected.shape)
    if not hasattr(received, "shape"):
        raise EnvMismatchError(
            f"{who} gave {field} as {type(received).__name__}, expected an array of shape {shape}. {_WAY_OUT}"
        )
    array = np.asarray(received)
    if array.shape != shape:
        raise EnvMismatchError(
            f"{who} gave {field} of shape {array.shape}, expected {shape}, "
            f"the first axis being the {num_envs} environments. {_WAY_OUT}"
        )
    _check_dtype(field, array, expected, who)
    _check_finite(field, array, who)


def check_row(field: str, received: object, expected: ArraySpec, *, env_index: int, who: str) -> None:
    """Refuse one environment's part of a batch if its shape, dtype or values do not fit."""
    who = f"{who} (environment {env_index})"
    try:
        array = np.asarray(received)
    except ValueError as error:
        raise EnvMismatchError(
            f"{who} gave {field} as {type(received).__name__} that makes no array, expected one of shape "
            f"{expected.shape}. {_WAY_OUT}"
        ) from error
    if array.shape != expected.shape:
        raise EnvMismatchError(f"{who} gave {field} of shape {array.shape}, expected {expected.shape}. {_WAY_OUT}")
    _check_dtype(field, array, expected, who)
    _check_finite(field, array[np.newaxis], who, has_index=False)


def check_reward(received: object, *, env_index: int, who: str) -> None:
    """Refuse a reward that is not one finite number."""
    is_number = isinstance(received, numbers.Real | np.bool_) or (
        isinstance(received, np.ndarray) and received.shape == () and received.dtype.kind in "biuf"
    )
    if not is_number:
        raise EnvMismatchError(
            f"{who} (environment {env_index}) gave the reward {received!r} ({type(received).__name__}), expected one "
            "number. Return a float from step()."
        )
    _check_finite("a reward", np.asarray([received], dtype=np.float64), f"{who} (environment {env_index})", False)


def check_flag(name: str, received: object, *, env_index: int, who: str) -> None:
    """Refuse a flag that is not a bool."""
    if not isinstance(received, bool | np.bool_):
        raise EnvMismatchError(
            f"{who} (environment {env_index}) gave {name}={received!r} ({type(received).__name__}), expected a bool. "
            f"Return bool({name}) from step()."
        )


def check_flags(name: str, received: object, *, num_envs: int, who: str) -> None:
    """Refuse a batch of flags that is not a bool for each environment."""
    check_batch(name, received, ArraySpec((), "bool"), num_envs=num_envs, who=who)


def check_rewards(received: object, *, num_envs: int, who: str) -> None:
    """Refuse a batch of rewards that is not a finite number for each environment."""
    check_batch("rewards", received, ArraySpec((), "float32"), num_envs=num_envs, who=who)


def _check_dtype(field: str, array: Array, expected: ArraySpec, who: str) -> None:
    # float64 for a float32 space is common and harmless; a float for an int or a bool is a mistake.
    if not np.can_cast(array.dtype, expected.dtype, "same_kind"):
        raise EnvMismatchError(
            f"{who} gave {field} of dtype {array.dtype}, expected {expected.dtype} or what converts to it. {_WAY_OUT}"
        )


def _check_finite(field: str, array: Array, who: str, has_index: bool = True) -> None:
    if array.dtype.kind != "f":
        return
    is_bad = ~np.isfinite(array)
    if is_bad.any():
        place = tuple(int(axis) for axis in np.argwhere(is_bad)[0])
        where = f" in environment {place[0]}" if has_index else ""
        at = f" at {list(place[1:])}" if len(place) > 1 else ""
        raise EnvMismatchError(
            f"{who} gave {field} with the value {array[place]}{at}{where}, expected finite numbers. "
            "Look for a division by zero or a missing bound in the environment."
        )
