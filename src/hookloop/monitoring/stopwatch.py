"""A stopwatch with named timers that nest, whose times go on after a resume."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hookloop.errors import HookStateError

Plain = Any

STOPWATCH_VERSION = 1


@dataclass(slots=True)
class _Timer:
    """One name's times: over all attempts, over this attempt, and up to the last lap."""

    total_ns: int = 0
    loaded_ns: int = 0
    lapped_ns: int = 0
    laps: int = 0
    started_ns: int | None = None

    def read_ns(self, now_ns: int) -> int:
        return self.total_ns + (0 if self.started_ns is None else now_ns - self.started_ns)


class Stopwatch:
    """Measures what a run spends its time on.

    Timers nest: inside ``timer("epoch")``, ``timer("rollout")`` measures ``epoch/rollout``. What was measured in
    earlier attempts is counted, what passed between two attempts is not. It belongs to one thread.

    Args:
        time_ns: The clock; a manual one in tests.
    """

    def __init__(self, time_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        self._time_ns = time_ns
        self._timers: dict[str, _Timer] = {}
        self._running: list[str] = []

    @property
    def names(self) -> tuple[str, ...]:
        """All timers, in the order in which they were first started."""
        return tuple(self._timers)

    @contextmanager
    def timer(self, name: str) -> Generator[None]:
        """Measure a block, as a part of the block around it."""
        self.start(name)
        try:
            yield
        finally:
            self.stop(name)

    def start(self, name: str) -> str:
        """Start a timer inside those that run, and return its full name."""
        full_name = f"{self._running[-1]}/{name}" if self._running else name
        timer = self._timers.setdefault(full_name, _Timer())
        if timer.started_ns is None:
            timer.started_ns = self._time_ns()
        self._running.append(full_name)
        return full_name

    def stop(self, name: str) -> None:
        """Stop the innermost running timer of this name, and all inside it; nothing happens if none runs."""
        for depth in range(len(self._running) - 1, -1, -1):
            full_name = self._running[depth]
            if full_name == name or full_name.endswith(f"/{name}"):
                self._stop_from(depth)
                return

    def stop_all(self) -> None:
        """Stop all timers, for example when what they measured has failed."""
        self._stop_from(0)

    def seconds(self, name: str) -> float:
        """Return the time of a timer over all attempts; 0 if it never ran."""
        return self._read_ns(name) / 1e9

    def attempt_seconds(self, name: str) -> float:
        """Return the time of a timer since the last resume."""
        timer = self._timers.get(name)
        return 0.0 if timer is None else (self._read_ns(name) - timer.loaded_ns) / 1e9

    def laps(self, name: str) -> int:
        """Return how many laps of a timer were taken, over all attempts."""
        return self._timers[name].laps if name in self._timers else 0

    def lap(self) -> dict[str, float]:
        """End a lap of every timer and return the seconds each took in it."""
        now_ns = self._time_ns()
        taken: dict[str, float] = {}
        for name, timer in self._timers.items():
            read_ns = timer.read_ns(now_ns)
            taken[name] = (read_ns - timer.lapped_ns) / 1e9
            timer.lapped_ns = read_ns
            timer.laps += 1
        return taken

    def rate(self, name: str, count: float) -> float | None:
        """Return ``count`` per second of a timer, both over all attempts; None while no time has passed."""
        seconds = self.seconds(name)
        return count / seconds if seconds > 0 else None

    def shares(self, of: str) -> dict[str, float]:
        """Return which part of a timer's time each timer directly inside it took; empty if it took none."""
        return shares({name: self.seconds(name) for name in self._timers}, of)

    def eta_seconds(self, name: str, done: float, total: float, *, done_before: float = 0) -> float | None:
        """Return the time left until ``total``, at the speed of this attempt; None if there is no speed yet.

        Args:
            name: The timer that measures the work.
            done: How much is done in all.
            total: How much there is to do.
            done_before: How much of it earlier attempts did, perhaps on another machine.
        """
        seconds, here = self.attempt_seconds(name), done - done_before
        if seconds <= 0 or here <= 0:
            return None
        return max(total - done, 0) * seconds / here

    def state_dict(self) -> dict[str, Plain]:
        """Return all times; of timers that run, up to now."""
        now_ns = self._time_ns()
        timers = {
            name: {
                "total_ns": timer.read_ns(now_ns),
                "lapped_ns": timer.lapped_ns,
                "laps": timer.laps,
            }
            for name, timer in self._timers.items()
        }
        return {"version": STOPWATCH_VERSION, "timers": timers}

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on from saved times; timers that run are measured from now on."""
        if saved.get("version") != STOPWATCH_VERSION:
            raise HookStateError(
                f"The saved stopwatch has version {saved.get('version')!r}; this hookloop reads version "
                f"{STOPWATCH_VERSION}."
            )
        running, now_ns = set(self._running), self._time_ns()
        self._timers = {
            name: _Timer(
                total_ns=times["total_ns"],
                loaded_ns=times["total_ns"],
                lapped_ns=times["lapped_ns"],
                laps=times["laps"],
            )
            for name, times in saved["timers"].items()
        }
        for name in running:
            self._timers.setdefault(name, _Timer()).started_ns = now_ns

    def _read_ns(self, name: str) -> int:
        return self._timers[name].read_ns(self._time_ns()) if name in self._timers else 0

    def _stop_from(self, depth: int) -> None:
        now_ns = self._time_ns()
        for full_name in self._running[depth:]:
            timer = self._timers[full_name]
            timer.total_ns, timer.started_ns = timer.read_ns(now_ns), None
        del self._running[depth:]


def shares(seconds: Mapping[str, float], of: str) -> dict[str, float]:
    """Return which part of ``seconds[of]`` the timers directly inside it took."""
    whole, prefix = seconds.get(of, 0.0), f"{of}/"
    if whole <= 0:
        return {}
    inside = {name: taken for name, taken in seconds.items() if name.startswith(prefix)}
    return {name[len(prefix) :]: taken / whole for name, taken in inside.items() if "/" not in name[len(prefix) :]}
