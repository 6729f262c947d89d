"""What commands write: lines, tables, sizes, times, and JSON that any program can read."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

_UNITS = ("B", "kB", "MB", "GB", "TB")


def say(line: str) -> None:
    """Write one line of result; what stands in data cannot steer the terminal."""
    sys.stdout.write(printable(line) + "\n")


def note(line: str) -> None:
    """Write one line that is no result to the error output."""
    sys.stderr.write(printable(line) + "\n")


def show_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, indent: str = "") -> None:
    """Write rows below the names of their columns."""
    cells = [[printable(text) for text in row] for row in (columns, *rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(columns))]
    for row in cells:
        say(indent + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


def write_json(found: object) -> None:
    """Write strict JSON: a number that is not finite becomes ``"nan"``, ``"inf"`` or ``"-inf"``."""
    say(json.dumps(_strict(found), allow_nan=False))


def short(value: object) -> str:
    """Return a value as it stands in a table."""
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def printable(text: str) -> str:
    """Return a text without the letters that steer a terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def size(count: float) -> str:
    """Return bytes as people read them."""
    power = 0
    while count >= 1000 and power < len(_UNITS) - 1:
        count, power = count / 1000, power + 1
    return f"{count:.3g} {_UNITS[power]}"


def duration(seconds: float) -> str:
    """Return a time span as people read it."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} us"
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    whole = int(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {whole % 60:02} s"


def moment(seconds_since_1970: float | None) -> str:
    """Return when something happened, in UTC."""
    if seconds_since_1970 is None:
        return "-"
    return datetime.fromtimestamp(seconds_since_1970, UTC).strftime("%Y-%m-%d %H:%M")


def _strict(found: Any) -> Any:
    if isinstance(found, float) and not math.isfinite(found):
        return str(found)
    if isinstance(found, Mapping):
        return {str(key): _strict(value) for key, value in found.items()}
    if isinstance(found, list | tuple):
        return [_strict(value) for value in found]
    return found
