"""Numbers on a clock: how far apart they are, and how they are written."""

from __future__ import annotations

import math

from hookloop.core.clocks import SECONDS
from hookloop.errors import ScheduleError


def grain(clock: str | None) -> float:
    """Return the distance to the next tick: counters move by whole numbers, seconds flow."""
    return 0 if clock == SECONDS else 1


def unit(clock: str | None) -> str:
    """Return the clock as the end of a text, where one is named."""
    return f" {clock}" if clock else ""


def plain(tick: float) -> str:
    """Write a tick the way a person would."""
    return str(int(tick)) if tick == int(tick) else repr(tick)


def require_number(what: str, value: object) -> None:
    """Refuse what is no number; True is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise ScheduleError(f"{what!r} takes a number, got {value!r}.")
