"""A thread that does one thing again and again until it is told to stop."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

from hookloop.errors import RegistrationError

STOP_SECONDS = 2.0  # how long to wait for a call that is under way


class Ticker:
    """Calls ``act`` every ``interval_seconds``, on a daemon thread of its own.

    It is independent of the thread that trains: long work there, or a wait for a lock or the network, does not
    delay it. It can be started again after it was stopped.
    """

    def __init__(self, name: str, interval_seconds: float, act: Callable[[], None]) -> None:
        require_seconds("interval_seconds", interval_seconds)
        self._name = name
        self._interval_seconds = interval_seconds
        self._act = act
        self._should_stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread; nothing happens if it runs."""
        if self._thread is not None:
            return
        self._should_stop = threading.Event()  # a new one: a thread that did not end in time keeps its own, set
        # Daemon: a process that ends without stopping it ends all the same.
        self._thread = threading.Thread(target=self._run, args=(self._should_stop,), name=self._name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; nothing happens if it does not run."""
        thread, self._thread = self._thread, None
        self._should_stop.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join(STOP_SECONDS)

    def _run(self, should_stop: threading.Event) -> None:
        while not should_stop.wait(self._interval_seconds):
            self._act()


def require_seconds(name: str, value: object) -> None:
    """Refuse a time that is not above 0 and finite."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value < math.inf:  # type: ignore[operator]  # a number by now
        raise RegistrationError(f"{name} must be above 0 seconds and finite, got {value!r}.")
