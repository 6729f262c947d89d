"""A seat for a worker: the process that has it now, the connection to it, and when the next one may try."""

from __future__ import annotations

import contextlib
import multiprocessing
import select
import signal
import socket
import time
from multiprocessing.context import ForkServerProcess

from hookloop.pools.channel import Channel, Message
from hookloop.pools.serving import serve
from hookloop.pools.status import NO_TASK, Phase, StatusRow
from hookloop.pools.turns import Turns

PATIENCE_SECONDS = 1.0


class Seat(Turns):
    """Starts one worker after the other.

    Args:
        number: Which worker it is.
        make: The pickled function that makes its performer.
        status: Where it says what it does.
    """

    def __init__(self, number: int, make: bytes, status: StatusRow) -> None:
        super().__init__(number, status)
        self.last_words: tuple[int, str] | None = None
        """The task in which the worker raised, and its traceback."""
        self._make = make
        self._process: ForkServerProcess | None = None
        self._channel: Channel | None = None

    @property
    def is_taken(self) -> bool:
        """Tell whether a worker was started here that is not known to have ended."""
        return self._process is not None

    @property
    def is_alive(self) -> bool:
        """Tell whether its process runs."""
        return self._process is not None and self._process.is_alive()

    @property
    def pid(self) -> int | None:
        """The number of its process."""
        return self._process.pid if self._process else None

    @property
    def channel(self) -> Channel:
        """The connection to the worker."""
        assert self._channel is not None
        return self._channel

    @property
    def sentinel(self) -> int:
        """What becomes readable when the worker ends."""
        assert self._process is not None
        return self._process.sentinel

    def start(self) -> bool:
        """Start a worker; False if that was not possible, and may be later."""
        context = multiprocessing.get_context("forkserver")
        self.results, self.last_words = 0, None
        self.sent_at = time.monotonic()
        self.status.enter(Phase.STARTING)
        ours, theirs = socket.socketpair()
        process = context.Process(
            target=serve, args=(self.number, theirs, self._make), name=f"hookloop-worker-{self.number}"
        )
        try:
            with theirs:
                process.start()
        except (EOFError, OSError):  # the fork server has just ended; the next try begins a new one
            ours.close()
            self.plan_next()
            return False
        self._process, self._channel = process, Channel(ours, patience_seconds=PATIENCE_SECONDS)
        return True

    def rest(self) -> list[Message]:
        """Return what the worker has sent and nobody has read, without waiting for more."""
        messages: list[Message] = []
        with contextlib.suppress(EOFError, OSError):
            while select.select([self.channel], [], [], 0)[0] and (message := self.channel.receive()):
                messages.append(message)
        return messages

    def bury(self, *, at_once: bool) -> str:
        """End the worker, if it does not end by itself, and say how it ended; plan the next one."""
        assert self._process is not None
        self._process.join(0.0 if at_once else PATIENCE_SECONDS)
        self._process.kill()
        self._process.join()
        why = _manner(self._process.exitcode)
        self.plan_next()
        self.leave()
        return why

    def dismiss(self) -> None:
        """Ask the worker to end, wherever it is; it closes its performer first."""
        if self._process:
            self._process.terminate()

    def wait_until_left(self, deadline: float) -> None:
        """Wait for the end of a worker that was dismissed; at the deadline it is killed."""
        if self._process:
            self._process.join(max(0.0, deadline - time.monotonic()))
            self._process.kill()
            self._process.join()
            self.leave()

    def leave(self) -> None:
        """Release what belonged to a worker that has ended."""
        assert self._process is not None
        self.channel.close()
        self._process.close()
        self._process = None
        self._is_ready = False
        self.status.enter(Phase.ENDED, NO_TASK)


def _manner(code: int | None) -> str:
    if code is not None and code < 0:
        return f"its worker was ended by {signal.Signals(-code).name}"
    return f"its worker ended with exit code {code}"
