"""Stacks on request: a signal makes the process write what all its threads are doing, whatever they are doing.

The handler is not Python code. It works while a hook sleeps, waits for a lock, or runs in native code.
"""

from __future__ import annotations

import contextlib
import faulthandler
import signal
import threading
from io import FileIO
from pathlib import Path

STACK_SIGNAL = signal.SIGUSR1

_lock = threading.Lock()
_owner: StackSignal | None = None


class StackSignal:
    """Makes SIGUSR1 append the stacks of all threads to a file, from ``register`` to ``unregister``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: FileIO | None = None

    def register(self) -> bool:
        """Take the signal; tell whether that was possible. A handler that somebody else has set is left alone."""
        global _owner
        with _lock:
            if _owner is not None or signal.getsignal(STACK_SIGNAL) != signal.SIG_DFL:
                return False
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                # Opened now: when it is needed, opening may be what hangs.
                self._file = FileIO(str(self.path), "a")
            except OSError:
                return False
            faulthandler.register(STACK_SIGNAL, self._file, all_threads=True)
            _owner = self
            return True

    def unregister(self) -> None:
        """Give the signal back; nothing happens if it was not taken."""
        global _owner
        with _lock:
            if _owner is not self or self._file is None:
                return
            faulthandler.unregister(STACK_SIGNAL)
            self._file.close()
            self._file, _owner = None, None
            with contextlib.suppress(OSError):
                if self.path.stat().st_size == 0:
                    self.path.unlink()  # nobody has asked
