"""Answers that many ask for at once, and that are made by one of them."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock


class Answer:
    """Something that is asked for again and again; threads may share it."""

    def __init__(self) -> None:
        self.when = 0.0
        self._body = b""
        self._lock = Lock()

    @property
    def is_being_made(self) -> bool:
        """Whether somebody is at it."""
        return self._lock.locked()

    def give(self, make: Callable[[], bytes], *, seconds: float, now: Callable[[], float]) -> bytes:
        """Return what was made less than some seconds ago, or make it; who comes meanwhile gets what was before.

        Args:
            make: Makes it; never empty.
            seconds: How old it may be.
            now: Tells the time.
        """
        if not self._lock.acquire(blocking=not self._body):
            return self._body
        try:
            if not self._body or now() - self.when >= seconds:
                self._body, self.when = make(), now()
            return self._body
        finally:
            self._lock.release()

    def between(self, act: Callable[[], None], *, seconds: float) -> None:
        """Do something while nobody makes it; not at all if whoever is at it takes longer than some seconds."""
        if not self._lock.acquire(timeout=seconds):
            return
        try:
            act()
        finally:
            self._lock.release()
