"""Numbers on a clock: how far apart they are, and how they are written."""

from __future__ import annotations

import math

from hookloop.core.clocks import CLOCK_ALIASES, SECONDS
from hookloop.errors import ScheduleError


def grain(clock: str | None) -> float:
    """Return the distance to the next tick: counters move by whole numbers, seconds flow."""
    return 0 if clock == SECONDS else 1


def known_as(clock: str | None) -> str | None:
    """Return the name a clock is known by; other words for it are accepted wherever a clock is named."""
    return None if clock is None else CLOCK_ALIASES.get(clock, clock)


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
