"""From what hooks log to what a table holds: plain numbers, texts and strict JSON, with nothing live in them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

Live = Any  # whatever a hook logs: numbers, tensors, arrays, nested mappings, lists

MOST_INTEGER = (1 << 63) - 1


def flat(values: Mapping[str, Live], prefix: str = "") -> Iterator[tuple[str, float | None]]:
    """Yield every number under its path joined by '/': lists averaged, None for what is no number."""
    for name, value in values.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping):
            yield from flat(cast("Mapping[str, Live]", value), f"{key}/")
        elif not _is_empty_list(value):
            yield key, number(value)


def number(value: Live) -> float | None:
    """Return a value as a float: a list by its mean, a tensor by its item; None for what is no number."""
    if isinstance(value, (float, int)):
        return _float(value)
    if isinstance(value, (list, tuple)):
        return _mean(cast("Iterable[Live]", value))
    if hasattr(value, "item"):
        try:
            return _float(value.item())
        except (TypeError, ValueError, RuntimeError):  # more than one element, said differently by every library
            return _mean(value.tolist()) if hasattr(value, "tolist") else None
    return _float(value) if hasattr(value, "__float__") else None


def split(value: float | None) -> tuple[float | None, str | None]:
    """Return a value as the columns ``value`` and ``nonfinite``."""
    if value is None or math.isfinite(value):
        return value, None
    return None, word(value)


def joined(value: float | None, nonfinite: str | None) -> float | None:
    """Return the value that ``split`` has taken apart."""
    return value if nonfinite is None else float(nonfinite)


def word(value: float) -> str:
    """Return the word for a float that is not finite."""
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def whole(value: Live) -> int:
    """Return a counter as an integer that every database can hold."""
    return max(-MOST_INTEGER, min(MOST_INTEGER, int(value)))


def text(value: object) -> str:
    """Return a text that every database can hold: PostgreSQL takes no NUL, and neither takes half a character."""
    return str(value).replace("\x00", "\\0").encode("utf-8", "backslashreplace").decode("utf-8")


def as_json(value: Live) -> str:
    """Return strict JSON: what is not finite by its word, what JSON does not know by its text."""
    return text(json.dumps(_plain(value), allow_nan=False, sort_keys=True, ensure_ascii=False))


def _plain(value: Live) -> Live:
    if isinstance(value, float):
        return value if math.isfinite(value) else word(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in cast("Mapping[object, Live]", value).items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(each) for each in cast("Iterable[Live]", value)]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return str(value)


def _is_empty_list(value: Live) -> bool:
    return isinstance(value, (list, tuple)) and not value


def _mean(values: Live) -> float | None:
    found = [number(each) for each in values] if isinstance(values, (list, tuple)) else [number(values)]
    numbers = [each for each in found if each is not None]
    # A mean over only some of the values would be a wrong number, and nobody would see it.
    if not numbers or len(numbers) < len(found):
        return None
    return math.fsum(numbers) / len(numbers) if all(map(math.isfinite, numbers)) else sum(numbers) / len(numbers)


def _float(value: Live) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None
