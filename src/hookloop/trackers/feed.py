"""A thread that tells one tracker what a run has measured, while the run goes on."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hookloop.trackers.replay import Replay

log = logging.getLogger("hookloop.trackers")

INTERVAL_SECONDS = 5.0  # each look takes some milliseconds from training
FINISH_SECONDS = 5.0
HUNG_SECONDS = 30.0
BEHIND_SECONDS = 30.0
MOST_PAUSE_SECONDS = 60.0
END_PAUSE_SECONDS = 0.02
END_RETRY_SECONDS = 0.25
END_GRACE_SECONDS = 1.0
ABORT_EPOCHS = 5
ABORT_SECONDS = 60.0

State = Literal["ok", "behind", "failing", "hung", "ended"]


@dataclass(frozen=True, slots=True)
class TrackerHealth:
    """How a tracker stands."""

    name: str
    state: State
    """ok; behind: it has lacked epochs for a while; failing: the latest try failed; hung: a call does not return."""
    epochs_behind: int
    """Completed epochs that it does not have yet; they wait in the statistics."""
    rows_sent: int
    """Points that this process has sent."""
    failures: int
    """Tries in a row that failed."""
    last_error: str
    """What the latest of them said; empty once one has succeeded."""


class TrackerFeed:
    """Tells one tracker what it lacks, in a thread of its own.

    Training only calls ``wake``, which costs less than a microsecond. What a tracker lacks stays in the statistics, so
    that nothing grows here while it is away. A failed try is repeated after growing pauses.

    Args:
        name: The tracker's name.
        replay: What is sent.
        interval_seconds: Seconds between two looks at the statistics.
        time_ns: A clock that does not jump.
    """

    def __init__(
        self,
        name: str,
        replay: Replay,
        *,
        interval_seconds: float = INTERVAL_SECONDS,
        time_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        if interval_seconds <= 0:
            raise ValueError(f"interval_seconds must be more than 0, got {interval_seconds}.")
        self.name = name
        self.stop_reason: str | None = None
        """Why somebody who uses the tracker wants the run to stop."""
        self._replay = replay
        self._interval_seconds = interval_seconds
        self._time_ns = time_ns
        self._newest_epoch = 0
        self._due_seconds = self._caught_up_seconds = self._polled_seconds = self._seconds()
        self._polled_epoch = 0
        self._busy_since: float | None = None
        self._ended_seconds: float | None = None
        self._failures = 0
        self._is_idle = self._is_over = self._is_abandoned = False
        self._outcome = "failed"
        self._stir = threading.Event()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._live, name=f"tracker-{name}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self, epochs: int) -> None:
        """Say that so many epochs are completed; returns at once."""
        self._newest_epoch = epochs
        if self._is_idle:
            self._is_idle = False
            self._stir.set()

    def health(self) -> TrackerHealth:
        """Return how it goes; waits for nothing."""
        behind = max(0, self._newest_epoch - self._replay.epochs_held)
        error = self._replay.error
        return TrackerHealth(
            self.name,
            self._state(behind),
            behind,
            self._replay.rows_sent,
            self._failures,
            "" if error is None else f"{type(error).__name__}: {error}",
        )

    def end(self, outcome: str) -> None:
        """Send the rest and finish; returns at once."""
        self._outcome = outcome
        self._ending.set()
        self._stir.set()

    def join(self, timeout_seconds: float = FINISH_SECONDS) -> bool:
        """Wait until everything is sent, no longer than this; return whether it is, and say in the log if not."""
        self._thread.join(max(0.0, timeout_seconds))
        if self._is_over and not self._thread.is_alive():
            return True
        self._is_abandoned = True
        health = self.health()
        busy_since = self._busy_since
        is_waiting = busy_since is not None and self._seconds() - busy_since > END_RETRY_SECONDS
        reason = "it does not answer" if is_waiting else health.last_error or "it was not done in time"
        log.warning(
            "The tracker %s lacks %d epochs at the end (%s); 'hookloop sync' sends them from the statistics.",
            self.name,
            health.epochs_behind,
            reason,
        )
        return False

    def turn(self) -> float | None:
        """Do what is due, and return the seconds to the next turn; None if there is nothing to do until ``wake``."""
        is_ending = self._ending.is_set()
        wait = self._due_seconds - self._seconds()
        if wait > 0 and not is_ending:
            return wait
        self._is_idle = True  # before the look at the epochs: whoever completes one from here on stirs the thread
        if not is_ending and self._newest_epoch <= self._replay.epochs_held:
            self._caught_up_seconds = self._seconds()
            return None
        self._is_idle = False
        is_well = self._advanced()
        if is_ending:
            return self._end_pause(is_well=is_well)
        pause = self._pause(is_well=is_well)
        self._due_seconds = self._seconds() + pause
        return pause

    def _live(self) -> None:
        try:
            while not self._is_over and not self._is_abandoned:
                pause = self.turn()
                if pause is None:
                    self._stir.wait()
                    # The rows of an epoch are not in the statistics yet when it ends.
                    self._due_seconds = self._seconds() + self._interval_seconds
                else:
                    (self._ending if not self._ending.is_set() else self._stir).wait(pause)
                self._stir.clear()
        finally:
            self._busy_since = self._seconds()
            self._replay.close()

    def _advanced(self) -> bool:
        self._busy_since = self._seconds()
        is_well = self._replay.advance()
        if is_well:
            self._failures = 0
            if self._replay.is_caught_up:
                self._caught_up_seconds = self._seconds()
            self._poll()
        else:
            self._failures += 1
            if self._failures == 2:  # once may be a moment's trouble
                log.warning(
                    "The tracker %s fails, and training goes on; it is tried again: %r", self.name, self._replay.error
                )
        self._busy_since = None
        return is_well

    def _pause(self, *, is_well: bool) -> float:
        if is_well:
            return self._interval_seconds if self._replay.is_caught_up else 0.0
        return min(MOST_PAUSE_SECONDS, self._interval_seconds * 2 ** min(self._failures - 1, 16))

    def _end_pause(self, *, is_well: bool) -> float:
        """Finish once everything is sent, what was logged after the last epoch included."""
        if not is_well or not self._replay.is_caught_up or self._replay.epochs_held < self._newest_epoch:
            return END_PAUSE_SECONDS if is_well else END_RETRY_SECONDS
        now = self._seconds()
        if self._ended_seconds is None:
            self._ended_seconds = now
        if self._replay.has_ended() or now - self._ended_seconds > END_GRACE_SECONDS:
            self._replay.advance()
            self._is_over = self._replay.is_caught_up and self._replay.finish(self._outcome)
        return END_PAUSE_SECONDS

    def _poll(self) -> None:
        now = self._seconds()
        is_due = now - self._polled_seconds >= ABORT_SECONDS
        if is_due and self._newest_epoch - self._polled_epoch >= ABORT_EPOCHS:
            self._polled_seconds, self._polled_epoch = now, self._newest_epoch
            self.stop_reason = self._replay.stop_reason()

    def _state(self, behind: int) -> State:
        now, busy_since = self._seconds(), self._busy_since
        if self._is_over and not self._thread.is_alive():
            return "ended"
        if busy_since is not None and now - busy_since > HUNG_SECONDS:
            return "hung"
        if self._failures:
            return "failing"
        return "behind" if behind and now - self._caught_up_seconds > BEHIND_SECONDS else "ok"

    def _seconds(self) -> float:
        return self._time_ns() / 1e9
