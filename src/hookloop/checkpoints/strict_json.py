"""JSON as strictly as it is written: UTF-8, finite numbers, no name twice, not too deep."""

from __future__ import annotations

import json
import math
from typing import Any

from hookloop.errors import DamagedCheckpointError

Plain = Any

MAX_DEPTH = 64


def parse_json(content: bytes | bytearray, what: str) -> Plain:
    """Read the JSON of a file, which is named in errors; whoever wrote it may have meant harm."""
    try:
        read = json.loads(
            content.decode(),
            parse_constant=_refuse_constant,
            parse_float=_finite_float,
            object_pairs_hook=_without_repeats,
        )
    except (ValueError, RecursionError) as error:
        raise DamagedCheckpointError(f"{what} is no strict JSON: {str(error)[:200]}.") from error
    if not _is_shallow(read, MAX_DEPTH):
        raise DamagedCheckpointError(f"{what} is nested deeper than {MAX_DEPTH} levels; no run writes such a file.")
    return read


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


def _finite_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):  # 1e999 is JSON, and reads as infinity
        raise ValueError(f"{text[:50]} is too large")
    return number


def _without_repeats(pairs: list[tuple[str, Plain]]) -> dict[str, Plain]:
    read = dict(pairs)
    if len(read) != len(pairs):
        raise ValueError("a name stands twice in one mapping")
    return read


def _is_shallow(value: Plain, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_shallow(each, levels - 1) for each in inner)
