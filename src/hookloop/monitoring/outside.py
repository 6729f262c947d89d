"""Watching a run from another process: what it is doing, whether it moves, and what to do if it does not.

This sees what nothing inside the process can: one that is stopped, that swaps, or whose Python cannot run because
native code does not give it back.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from hookloop.errors import HeartbeatError, RegistrationError
from hookloop.monitoring.heartbeat import Beat, is_running, read_beat
from hookloop.monitoring.stacks import STACK_SIGNAL
from hookloop.monitoring.ticker import require_seconds

OutsidePolicy = Literal["warn", "kill"]
Ending = Literal["ended", "gone", "killed", "hung", "missing", "running"]

STACKS_SECONDS = 1.0  # how long to wait for the stacks before the process is ended


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the watching ended.

    ``ended``: the run said so itself. ``gone``: its process ended without a word. ``killed``: it hung, and was ended.
    ``hung``: it hangs and was left alone. ``missing``: there was no heartbeat. ``running``: one look, and it is fine.
    """

    ending: Ending
    words: str
    beat: Beat | None = None


def watch_heartbeat(
    path: Path,
    timeout_seconds: float,
    policy: OutsidePolicy = "warn",
    *,
    once: bool = False,
    grace_seconds: float = 10.0,
    say: Callable[[str], None] = lambda _line: None,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Verdict:
    """Watch the heartbeat of a run until the run ends, or hangs and is ended.

    A run hangs when for ``timeout_seconds`` its file was not written, or nothing in it moved: no clock, no phase, no
    hook. Then it is asked for the stacks of its threads. ``warn`` says so and goes on watching; ``kill`` sends SIGTERM
    and, if it is still there after ``grace_seconds``, SIGKILL.

    Args:
        path: The heartbeat file.
        timeout_seconds: How long nothing may move.
        policy: What to do then.
        once: Look once, say what is found, and change nothing.
        grace_seconds: Seconds between SIGTERM and SIGKILL.
        say: Takes a line for people.
        monotonic: The clock of this machine.
        sleep: What waits.
    """
    require_seconds("timeout_seconds", timeout_seconds)
    if policy not in get_args(OutsidePolicy):
        raise RegistrationError(f"The policy for a run that hangs is 'warn' or 'kill', got {policy!r}.")
    watcher = _Watcher(path, timeout_seconds, say, monotonic, sleep)
    while True:
        verdict = watcher.look()
        if once and verdict.beat is None:
            return Verdict("missing", verdict.words)
        if verdict.ending == "hung" and not once and not watcher.has_warned:
            watcher.has_warned = True
            say(verdict.words)
            watcher.ask_for_stacks(verdict.beat)
            if policy == "kill" and verdict.beat is not None:
                return watcher.kill(verdict.beat, grace_seconds)
        elif verdict.ending == "running":
            watcher.has_warned = False
        if once or verdict.ending in ("ended", "gone", "missing"):
            return verdict
        sleep(min(1.0, timeout_seconds / 4))


class _Watcher:
    """What the watching remembers between two looks."""

    def __init__(
        self,
        path: Path,
        timeout_seconds: float,
        say: Callable[[str], None],
        monotonic: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self._path = path
        self._timeout_seconds = timeout_seconds
        self._say = say
        self._monotonic = monotonic
        self._sleep = sleep
        self._began = monotonic()
        self._last_beat: Beat | None = None
        self._changed = self._began
        self.has_warned = False

    def look(self) -> Verdict:
        """Read the file once and judge."""
        try:
            beat = read_beat(self._path)
        except (FileNotFoundError, NotADirectoryError):
            return self._missing(f"there is no heartbeat {self._path}")
        except HeartbeatError as error:
            return self._missing(str(error))
        if self._last_beat is None or beat.monotonic != self._last_beat.monotonic:
            self._last_beat, self._changed = beat, self._monotonic()
        who = f"process {beat.pid} on {beat.host}"
        if beat.outcome is not None:
            return Verdict("ended", f"{who} has ended: {beat.outcome}", beat)
        if self._is_local(beat) and not is_running(beat):
            return Verdict("gone", f"{who} is gone without a word; it was last seen in {beat.words}", beat)
        silent, idle = self._silence(beat)
        # Between two beats nothing can be told, so two of them are the least there is to wait for.
        timeout = max(self._timeout_seconds, 2 * beat.interval_seconds)
        if max(silent, idle) <= timeout:
            return Verdict("running", f"{who} is in {beat.words}", beat)
        how = f"has not beaten for {silent:.1f} s" if silent > timeout else f"has not moved for {idle:.1f} s"
        return Verdict("hung", f"{who} {how} (timeout {timeout:g} s), in {beat.words}", beat)

    def ask_for_stacks(self, beat: Beat | None) -> None:
        """Have the process write the stacks of its threads, if it has said that it can."""
        size = _size(None if beat is None else beat.stack_file)
        # No other signal, whatever the file says: this one was taken by the process itself.
        if beat is None or beat.stack_signal != STACK_SIGNAL or not self._send(beat, STACK_SIGNAL):
            self._say("  it cannot be asked for its stacks")
            return
        waited = 0.0
        while _size(beat.stack_file) == size and waited < STACKS_SECONDS:
            self._sleep(0.05)
            waited += 0.05
        if _size(beat.stack_file) == size:
            self._say(f"  it has written no stacks to {beat.stack_file} within {STACKS_SECONDS:g} s")
        else:
            self._say(f"  the stacks of all its threads are in {beat.stack_file}")

    def kill(self, beat: Beat, grace_seconds: float) -> Verdict:
        """End the process: politely, then not."""
        if not self._is_local(beat):
            return Verdict("hung", f"it runs on {beat.host}, and can be ended only there", beat)
        for number, patience in ((signal.SIGTERM, grace_seconds), (signal.SIGKILL, grace_seconds)):
            if self._send(beat, number):
                self._say(f"  sent {number.name} to process {beat.pid}")
                self._wait_for_end(beat, patience)
        if is_running(beat):
            return Verdict("hung", f"process {beat.pid} does not end; the kernel holds it", beat)
        return Verdict("killed", f"process {beat.pid} was ended", beat)

    def _send(self, beat: Beat, number: signal.Signals) -> bool:
        """Send a signal to the very process that wrote the heartbeat; tell whether it was there."""
        if not self._is_local(beat) or not is_running(beat):
            return False
        try:
            os.kill(beat.pid, number)
        except ProcessLookupError:
            return False
        return True

    def _wait_for_end(self, beat: Beat, patience: float) -> None:
        waited = 0.0
        while is_running(beat) and waited < patience:
            self._sleep(0.05)
            waited += 0.05

    def _missing(self, words: str) -> Verdict:
        waited = self._monotonic() - self._began
        # A run that is only just starting has not written one yet.
        return Verdict("missing" if waited > self._timeout_seconds else "running", words)

    def _is_local(self, beat: Beat) -> bool:
        return beat.host == os.uname().nodename

    def _silence(self, beat: Beat) -> tuple[float, float]:
        """Return the seconds since the last beat, and since something moved."""
        now = self._monotonic()
        unchanged = now - self._changed
        if not self._is_local(beat) or beat.monotonic > now:  # another machine's clock, or one from before a reboot
            return unchanged, unchanged + (beat.monotonic - beat.progress)
        return max(now - beat.monotonic, unchanged), now - beat.progress


def _size(path: str | None) -> int:
    try:
        return 0 if path is None else os.stat(path).st_size
    except OSError:
        return 0
