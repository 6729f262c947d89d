"""What environments tell of their episodes beside the rewards: the numbers in the infos of a last step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np

Infos = Mapping[str, Any]

# Not of the episode: what Gymnasium and EnvPool need themselves, and masks of actions.
HOUSEKEEPING = frozenset(
    {"action_mask", "elapsed_step", "env_id", "final_info", "final_obs", "players", "TimeLimit.truncated"}
)
NO_INFO: Mapping[str, float] = {}


def numbers(info: Infos) -> Mapping[str, float]:
    """Return every finite number of one environment's info, nested ones under their path joined by '/'."""
    return dict(_numbers(info, "")) if info else NO_INFO


def row_numbers(infos: Infos, index: int) -> Mapping[str, float]:
    """Return the finite numbers that the infos of a vector environment hold for one of its environments."""
    return dict(_row_numbers(infos, index, "")) if infos else NO_INFO


def _numbers(info: Infos, prefix: str) -> Iterator[tuple[str, float]]:
    for name, value in info.items():
        if name in HOUSEKEEPING:
            continue
        if isinstance(value, Mapping):
            yield from _numbers(cast("Infos", value), f"{prefix}{name}/")
        else:
            yield from _number(f"{prefix}{name}", value)


def _row_numbers(infos: Infos, index: int, prefix: str) -> Iterator[tuple[str, float]]:
    for name, values in infos.items():
        # Gymnasium puts beside each key which environments gave it; the others have zeros.
        told = infos.get(f"_{name}")
        if name in HOUSEKEEPING or name.startswith("_") or (told is not None and not told[index]):
            continue
        if isinstance(values, Mapping):
            yield from _row_numbers(cast("Infos", values), index, f"{prefix}{name}/")
        elif isinstance(values, np.ndarray) and values.ndim >= 1:
            yield from _number(f"{prefix}{name}", values[index])


def _number(name: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, (bool, int, float, np.number, np.bool_)) or getattr(value, "size", None) == 1:
        found = np.asarray(value)
        if found.dtype.kind in "biuf" and np.isfinite(found).all():
            yield name, float(found.reshape(()))
