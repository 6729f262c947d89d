"""Waiting for what happens, however busy the machine is.

Nothing here says how fast something is: whoever waits gives it far more time than it can need, and goes on at once
when it has happened.
"""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_SECONDS = 60.0
"""How long to wait for what is a matter of a moment on an idle machine."""


def wait_until(
    is_so: Callable[[], object],
    what: str = "what was waited for has not happened",
    seconds: float = PATIENCE_SECONDS,
) -> None:
    """Wait until something is so."""
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until, f"{what}, in {seconds:g} seconds"
        time.sleep(0.005)
