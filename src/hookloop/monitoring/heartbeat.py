"""Signs of life: a small file, rewritten by a thread for as long as the process can run Python at all.

The file also says when the run was last seen to make *progress*, because a thread beats on while the training thread
hangs: a clock that moved, another phase, another hook.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from hookloop.errors import HeartbeatError
from hookloop.monitoring.phases import PhaseTrace
from hookloop.monitoring.ticker import Ticker
from hookloop.storage.atomic import write_bytes

log = logging.getLogger("hookloop.monitoring")

Plain = Any

BEAT_VERSION = 1
TOUCHED_FILE_VARIABLE = "HOOKLOOP_HEARTBEAT_FILE"
_MOST_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Beat:
    """What a heartbeat file says. Monotonic times can be compared within one boot of one host, and not beyond."""

    pid: int
    process_started: float
    """When the process was created: together with the pid it names one process of this boot for ever."""
    host: str
    rank: int
    phase: str
    phase_since: float
    """Monotonic seconds."""
    event: str
    hook: str
    """The event and the hook that are running; empty between hooks."""
    clocks: dict[str, float]
    monotonic: float
    """When this was written."""
    progress: float
    """When something was last seen to move."""
    wall_time: float
    interval_seconds: float
    outcome: str | None = None
    """How the run ended; None while it lasts."""
    stack_signal: int | None = None
    """The signal that makes the process write the stacks of all its threads; None if there is none."""
    stack_file: str | None = None
    version: int = BEAT_VERSION

    @property
    def words(self) -> str:
        """What the process is doing."""
        doing = self.phase or "nothing yet"
        hook = f", hook {self.hook!r} at {self.event}" if self.hook else ""
        clocks = ", ".join(f"{name}={value}" for name, value in self.clocks.items() if value and name != "seconds")
        return f"{doing}{hook}{f' ({clocks})' if clocks else ''}"


class Heartbeat:
    """Rewrites a file every ``interval_seconds``, on a thread of its own, from ``start`` to ``stop``.

    If the environment variable HOOKLOOP_HEARTBEAT_FILE names a file, that one is touched as often.

    Args:
        path: The file; None to touch the other one alone.
        interval_seconds: Seconds between two beats.
        trace: The phases of the run, written by its training thread.
        look: Returns what else there is to say: ``event``, ``hook`` and ``clocks``. Called on the heartbeat's thread.
        rank: Which process of the run this is.
        monotonic: The clock that ages are told by.
    """

    def __init__(
        self,
        path: str | Path | None,
        interval_seconds: float = 5.0,
        *,
        trace: PhaseTrace | None = None,
        look: Callable[[], Mapping[str, Plain]] = dict,
        rank: int = 0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = None if path is None else Path(path)
        self.trace = trace if trace is not None else PhaseTrace()
        self.stack_signal: int | None = None
        self.stack_file: str | None = None
        self.failures = 0
        self._interval_seconds = interval_seconds
        self._look = look
        self._rank = rank
        self._monotonic = monotonic
        self._ticker = Ticker("hookloop-heartbeat", interval_seconds, self.beat)
        self._last_signature: object = None
        self._progress = monotonic()
        self._process_started = _started(os.getpid()) or 0.0

    def start(self) -> None:
        """Beat from now on, the first time before this returns: a file of an earlier attempt is then gone."""
        self._progress = self._monotonic()
        self.beat()
        self._ticker.start()

    def stop(self, outcome: str | None = None) -> None:
        """Beat a last time, with the outcome, and end the thread."""
        self._ticker.stop()
        self.beat(outcome)

    def beat(self, outcome: str | None = None) -> None:
        """Write the file, and touch the other one; a disk that refuses is noted, and tried again next time."""
        try:
            if self.path is not None:
                content = json.dumps(asdict(replace(self.read(), outcome=outcome))).encode()
                write_bytes(self.path, content, is_private=False, is_durable=False)
            touched = os.environ.get(TOUCHED_FILE_VARIABLE)
            if touched:
                Path(touched).touch()
        except OSError as error:
            self.failures += 1
            if self.failures == 1:
                log.warning("the heartbeat cannot be written, and is tried again at the next one: %s", error)

    def read(self) -> Beat:
        """Return what there is to say now."""
        stack, seen, now = self.trace.stack, self._look(), self._monotonic()
        clocks: dict[str, float] = {
            name: value for name, value in seen.get("clocks", {}).items() if isinstance(value, int | float)
        }
        event, hook = str(seen.get("event", "")), str(seen.get("hook", ""))
        counted = {name: value for name, value in clocks.items() if name != "seconds"}
        signature = (stack, event, hook, seen.get("call"), tuple(counted.items()))
        if signature != self._last_signature:
            self._last_signature, self._progress = signature, now
        return Beat(
            pid=os.getpid(),
            process_started=self._process_started,
            host=os.uname().nodename,
            rank=self._rank,
            phase="/".join(phase.name for phase in stack),
            phase_since=stack[-1].since_ns / 1e9 if stack else now,
            event=event,
            hook=hook,
            clocks=clocks,
            monotonic=now,
            progress=self._progress,
            wall_time=time.time(),
            interval_seconds=self._interval_seconds,
            stack_signal=self.stack_signal,
            stack_file=self.stack_file,
        )


def read_beat(path: Path) -> Beat:
    """Read a heartbeat file; FileNotFoundError if there is none, HeartbeatError if it is something else."""
    with path.open("rb") as file:
        content = file.read(_MOST_BYTES)
    try:
        read = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise HeartbeatError(f"{path} is no heartbeat: {error}.") from error
    expected = {each.name for each in fields(Beat)}
    if not isinstance(read, dict) or set(read) != expected or read["version"] != BEAT_VERSION or not _is_sound(read):
        raise HeartbeatError(f"{path} is no heartbeat of this hookloop: it should hold {', '.join(sorted(expected))}.")
    return Beat(**read)


def is_running(beat: Beat) -> bool:
    """Tell whether the very process that wrote this still runs on this machine."""
    started = _started(beat.pid)
    return started is not None and abs(started - beat.process_started) < 1.0


def _started(pid: int) -> float | None:
    """Return when a process was created, in units that only this function knows; None if it is gone or a zombie."""
    if not Path("/proc/self/stat").exists():
        return _started_elsewhere(pid)
    try:
        # The name of the program stands in brackets and may hold anything, brackets and blanks included.
        after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    state, ticks_since_boot = after_name[0], after_name[19]
    return None if state in "ZX" else float(ticks_since_boot)


def _started_elsewhere(pid: int) -> float | None:
    # Only where there is no /proc: importing it takes forty milliseconds, which every run would pay.
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except (psutil.Error, ValueError):
        return None


def _is_sound(read: Mapping[str, Plain]) -> bool:
    numbers = ("pid", "process_started", "rank", "phase_since", "monotonic", "progress", "wall_time")
    is_all_numbers = all(isinstance(read[name], int | float) for name in numbers)
    texts = all(isinstance(read[name], str) for name in ("host", "phase", "event", "hook"))
    return is_all_numbers and texts and isinstance(read["pid"], int) and isinstance(read["clocks"], dict)
