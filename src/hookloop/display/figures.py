"""Numbers as people read them."""

from __future__ import annotations

import math


def number(value: float) -> str:
    """Return a number in about four digits: ``412.3``, ``-0.01204``, ``1.2e+09``, ``nan``."""
    if isinstance(value, int) and abs(value) < 10**9:
        return count(value)
    if not math.isfinite(value):
        return str(float(value))
    size = abs(value)
    if size and (size < 1e-4 or size >= 1e7):
        return f"{value:.3e}"
    if size >= 1000:
        return f"{value:,.1f}" if size < 1e5 else f"{value:,.0f}"
    return f"{value:.4g}" if size < 1 else f"{value:.{3 - int(math.log10(size))}f}"


def count(value: int) -> str:
    """Return a whole number with its thousands apart: ``60,416``."""
    return f"{value:,}"


def rate(per_second: float) -> str:
    """Return how many a second: ``1,240``, and with digits behind the point where there are few: ``0.42``."""
    return count(round(per_second)) if per_second >= 10 else f"{per_second:.2g}"


def share(value: float) -> str:
    """Return a part of 1 in percent: ``61 %``, ``2.1 %``, ``<0.1 %``."""
    percent = value * 100
    if not math.isfinite(percent):
        return "?"
    if 0 < percent < 0.1:
        return "<0.1 %"
    return f"{percent:.1f} %" if percent < 9.95 else f"{percent:.0f} %"


def duration(seconds: float | None) -> str:
    """Return a time as a clock shows it: ``0:01:12``, ``3d 04:05:06``."""
    if seconds is None or not math.isfinite(seconds):
        return "-"
    minutes, second = divmod(int(max(seconds, 0.0)), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"{days}d {hour:02}:{minute:02}:{second:02}" if days else f"{hour}:{minute:02}:{second:02}"


def shown(value: object) -> str:
    """Return any value in a few letters that cannot steer a terminal."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number(value)
    return printable(str(value))


def printable(text: str) -> str:
    """Return a text in which everything that is not to be seen is a question mark, so that it steers no terminal."""
    return text if text.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in text)
