"""Plain data: what may stand in saved state. Strict JSON, plus tensors, and nothing live."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import cast

from hookloop.errors import HookStateError


def is_tensor(value: object) -> bool:
    """Tell whether the value is an array of numbers; by its face, since the core knows no torch or numpy."""
    return hasattr(value, "shape") and hasattr(value, "dtype") and not callable(value)


def is_plain(value: object) -> bool:
    """Tell whether the value can be saved as it is."""
    return _fault(value, "") is None


def require_plain(value: object, where: str) -> None:
    """Refuse a value that cannot be saved, naming the first place at which it fails."""
    fault = _fault(value, where)
    if fault is not None:
        raise HookStateError(
            f"{fault}; saved state is strict JSON (finite numbers, texts, lists, mappings with text keys) plus tensors."
        )


def detached_copy(value: object) -> object:
    """Copy a value so that later training steps cannot change it; tensors are detached first."""
    detach = getattr(value, "detach", None)
    if callable(detach):
        return cast("_Tensor", detach()).clone()
    return copy.deepcopy(value)


class _Tensor:
    """The one method of a detached tensor that is used here."""

    def clone(self) -> object: ...


def _fault(value: object, where: str) -> str | None:
    if value is None or isinstance(value, bool | int | str) or is_tensor(value):
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else f"{where} is {value}, which JSON has no word for"
    if isinstance(value, Mapping):
        return _fault_in_mapping(cast("Mapping[object, object]", value), where)
    if isinstance(value, list | tuple):
        items = cast("Sequence[object]", value)
        return next((f for f in (_fault(item, f"{where}[{i}]") for i, item in enumerate(items)) if f), None)
    return f"{where} holds a {type(value).__name__}, which cannot be saved"


def _fault_in_mapping(value: Mapping[object, object], where: str) -> str | None:
    for key, item in value.items():
        if not isinstance(key, str):
            return f"{where} has the key {key!r}, which is no text"
        fault = _fault(item, f"{where}.{key}" if where else key)
        if fault:
            return fault
    return None
