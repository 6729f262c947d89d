"""Deadlines: when something takes too long, the stacks of all threads are written down, and a policy is applied."""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import sys
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, get_args

from hookloop.errors import RegistrationError
from hookloop.monitoring.ticker import Ticker, require_seconds

log = logging.getLogger("hookloop.monitoring")

Policy = Literal["warn", "stop", "abort"]

EXIT_CODE_HUNG = 70
LONGEST_LOOK_SECONDS = 0.25
LOOKS_PER_DEADLINE = 4


@dataclass(frozen=True, slots=True)
class Activity:
    """Something a run is doing.

    Args:
        name: What, for people: ``hook 'save' at epoch_end``.
        kinds: The deadlines that may apply to it; the first that is set does.
        call: Which time it is; two looks that see the same are looks at the same call.
        since_ns: When it began; None if that is not known better than by looking.
    """

    name: str
    kinds: tuple[str, ...]
    call: Hashable
    since_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Overdue:
    """An activity that has exceeded its deadline."""

    activity: Activity
    kind: str
    deadline_seconds: float
    seconds: float

    @property
    def words(self) -> str:
        """What is wrong, and what the rule was."""
        return (
            f"{self.activity.name} has taken {self.seconds:.1f} s; the deadline of {self.kind!r} is "
            f"{self.deadline_seconds:g} s"
        )


class Watchdog:
    """Looks at what a run is doing, on a thread of its own, and acts when it takes too long.

    A deadline is noticed within a quarter of it, or a quarter of a second if that is less.

    Args:
        deadlines: Seconds by kind of activity.
        look: Returns what is being done now, each the innermost last. Called on the watchdog's thread.
        policy: ``warn`` writes the stacks, ``stop`` also calls ``stop``, ``abort`` ends the process with exit code 70.
        stop: Asks the run to stop.
        log_file: Where to write the stacks; the error output by default.
        time_ns: The clock; the one that ``Activity.since_ns`` is told by.
        exit_process: What ends the process; a fake in tests.
    """

    def __init__(
        self,
        deadlines: Mapping[str, float],
        look: Callable[[], Iterable[Activity]],
        *,
        policy: Policy = "warn",
        stop: Callable[[Overdue], None] | None = None,
        log_file: str | Path | None = None,
        time_ns: Callable[[], int] = time.monotonic_ns,
        exit_process: Callable[[int], object] = os._exit,
    ) -> None:
        require_policy(policy)
        for kind, seconds in deadlines.items():
            require_seconds(f"The deadline of {kind!r}", seconds)
        self.deadlines = dict(deadlines)
        self.overdue: list[Overdue] = []
        self._look = look
        self._policy = policy
        self._stop = stop
        self._log_file = None if log_file is None else Path(log_file)
        self._time_ns = time_ns
        self._exit_process = exit_process
        self._seen: dict[tuple[str, Hashable], int] = {}
        self._reported: set[tuple[str, Hashable]] = set()
        shortest = min(self.deadlines.values(), default=LONGEST_LOOK_SECONDS)
        interval = min(LONGEST_LOOK_SECONDS, shortest / LOOKS_PER_DEADLINE)
        self._ticker = Ticker("hookloop-watchdog", interval, self.check)

    def start(self) -> None:
        """Watch from now on."""
        self._seen.clear()
        self._reported.clear()
        self._ticker.start()

    def stop(self) -> None:
        """Watch no more."""
        self._ticker.stop()

    def check(self) -> None:
        """Look once, and act if something takes too long."""
        now_ns = self._time_ns()
        current: dict[tuple[str, Hashable], int] = {}
        for activity in self._look():
            key = activity.name, activity.call
            since_ns = activity.since_ns if activity.since_ns is not None else self._seen.get(key, now_ns)
            current[key] = since_ns
            late = self._late(activity, (now_ns - since_ns) / 1e9)
            if late is not None and key not in self._reported:
                self._reported.add(key)
                self._act(late)
        self._seen = current  # what is not done any more is forgotten, so that neither grows
        self._reported &= set(current)

    def _late(self, activity: Activity, seconds: float) -> Overdue | None:
        for kind in activity.kinds:
            deadline = self.deadlines.get(kind)
            if deadline is not None:
                return Overdue(activity, kind, deadline, seconds) if seconds >= deadline else None
        return None

    def _act(self, late: Overdue) -> None:
        self.overdue = [*self.overdue[-99:], late]
        try:
            write_stacks(self._log_file, f"{late.words}; policy: {self._policy}")
        except (OSError, ValueError) as error:
            log.warning("the stacks cannot be written to %s: %s", self._log_file, error)
        if self._policy == "abort":
            where = "" if self._log_file is None else f"; the stacks of all threads are in {self._log_file}"
            _write_error(f"hookloop: {late.words}; exit code {EXIT_CODE_HUNG}{where}\n")
            self._exit_process(EXIT_CODE_HUNG)
        # After the exit: a handler of the log may wait for a lock that the hung thread holds.
        log.warning("%s; the stacks of all threads are in %s", late.words, self._log_file or "the error output")
        if self._policy == "stop" and self._stop is not None:
            self._stop(late)


def require_policy(policy: object) -> None:
    """Refuse a policy that does not exist."""
    if policy not in get_args(Policy):
        raise RegistrationError(f"A watchdog's policy is 'warn', 'stop' or 'abort', got {policy!r}.")


def write_stacks(path: Path | None, reason: str) -> None:
    """Append the stacks of all threads to a file, or write them to the error output."""
    head = f"\n=== {datetime.now(UTC).isoformat(timespec='milliseconds')} process {os.getpid()}: {reason}\n"
    if path is None:
        _write_error(head)
        if sys.__stderr__ is not None:
            faulthandler.dump_traceback(sys.__stderr__, all_threads=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab", buffering=0) as file:
        file.write(head.encode())
        faulthandler.dump_traceback(file, all_threads=True)


def _write_error(text: str) -> None:
    """Write to the error output past Python's own buffer, whose lock the hung thread may hold."""
    with contextlib.suppress(OSError):
        os.write(2, text.encode())
