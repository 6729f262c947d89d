"""Interrupts: the first asks the run to finish its safe unit, the second leaves now."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Literal

SECOND = Literal["raise", "exit"]
WATCHED = (signal.SIGINT, signal.SIGTERM)

_last_acts: list[Callable[[], None]] = []


def before_leaving(act: Callable[[], None]) -> Callable[[], None]:
    """Have ``act`` called before a second signal ends the process at once; return what takes that back.

    It is called in the middle of anything, so it must not wait for a lock, nor fail.
    """
    _last_acts.append(act)

    def take_back() -> None:
        if act in _last_acts:
            _last_acts.remove(act)

    return take_back


class SignalWatch:
    """Takes SIGINT and SIGTERM while a run lasts; the handler only sets a flag.

    Args:
        second: What a second signal does. ``raise`` raises KeyboardInterrupt, for notebooks and libraries;
            ``exit`` ends the process at once with 128 + the signal's number, for commands.
    """

    def __init__(self, second: SECOND = "raise") -> None:
        self.received: int | None = None
        self._second: SECOND = second
        self._previous: dict[int, Any] = {}

    @property
    def name(self) -> str:
        """The received signal's name, such as SIGINT."""
        return "" if self.received is None else signal.Signals(self.received).name

    def __enter__(self) -> SignalWatch:
        # Python delivers signals to the main thread only; elsewhere the caller's handlers stay.
        if threading.current_thread() is threading.main_thread():
            for number in WATCHED:
                self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        self._previous.clear()

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.received is None:
            self.received = number
            return
        if self._second == "exit":
            for act in _last_acts:
                act()
            os._exit(128 + number)
        raise KeyboardInterrupt(signal.Signals(number).name)
