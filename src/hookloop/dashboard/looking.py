"""What the server knows of the runs in a folder; however many ask, each run is looked at once in a while."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import orjson

from hookloop.charts.figures import figure_of
from hookloop.dashboard.plain import run_as_plain
from hookloop.errors import UnknownNameError
from hookloop.runs.folder import CONFIG_FILE, RunFolder, all_runs
from hookloop.runs.panels import (
    CLOCK_NAMES,
    CLOCKS,
    Clock,
    by_group,
    group_of,
    measured,
    overview,
    says_the_most,
    usual_clock,
)
from hookloop.runs.standing import summary
from hookloop.runs.tags import TAGS_FOLDER
from hookloop.runs.watched_run import WatchedRun

Plain = Any

VIEW_SECONDS = 0.5
"""How old a view of a run may be that is given again."""
CURVES_SECONDS = 4.0
"""How old curves may be; drawing them anew costs more, and they move slowly."""
IDLE_SECONDS = 120.0
"""After how long without a question the statistics of a run are closed."""
_SETTLED = ("completed", "stopped", "interrupted", "failed")


@dataclass(slots=True)
class _Answer:
    body: bytes
    when: float


@dataclass(slots=True)
class _Look:
    """A run that somebody looks at. One thread at a time: those who ask meanwhile get what it has found."""

    folder: RunFolder
    made: tuple[int, int, int] | None
    """Which file its settings are: another one is another run of the same name."""
    watched: WatchedRun
    asked: float
    lock: Lock = field(default_factory=Lock)
    answers: dict[object, _Answer] = field(default_factory=dict[object, _Answer])

    def close(self) -> None:
        with self.lock:
            self.watched.close()


class Looks:
    """Answers what pages ask of the runs in a folder, as JSON. Threads may share it.

    Args:
        runs_dir: The folder of all runs.
        clock: Seconds that only ever grow.
    """

    def __init__(self, runs_dir: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._runs_dir = runs_dir
        self._clock = clock
        self._lock = Lock()
        self._looks: dict[str, _Look] = {}
        self._settled: dict[str, tuple[object, dict[str, Plain]]] = {}

    def close(self) -> None:
        """Let go of all statistics."""
        with self._lock:
            looks, self._looks = list(self._looks.values()), {}
        for look in looks:
            look.close()

    def runs(self) -> bytes:
        """Return all runs, the newest first, as ``hookloop runs`` has them."""
        found = [self._summary(folder) for folder in all_runs(self._runs_dir)]
        found.sort(key=lambda run: run["began"] or 0.0, reverse=True)
        return orjson.dumps({"version": 1, "folder": self._runs_dir.name, "runs": found})

    def view(self, run: str) -> bytes:
        """Return a run as it is now."""
        return self._answer(run, "view", VIEW_SECONDS, lambda look: run_as_plain(look.watched.view()))

    def curves(self, run: str, clock: str = "", group: str = "") -> bytes:
        """Return the figures that say the most of a run, and what other metrics there are; or those of one group.

        Args:
            run: The run's name.
            clock: The clock below; the usual one of such runs, if none is named.
            group: What stands before the first slash of the metrics that are wanted.
        """
        if clock and clock not in CLOCKS:
            raise UnknownNameError("clock", clock, CLOCKS)
        return self._answer(run, (clock, group), CURVES_SECONDS, lambda look: _curves(look.folder, clock, group))

    def _answer(self, run: str, what: object, seconds: float, make: Callable[[_Look], Plain]) -> bytes:
        look = self._look(run)
        with look.lock:
            known = look.answers.get(what)
            if known is None or self._clock() - known.when >= seconds:
                known = look.answers[what] = _Answer(orjson.dumps(make(look)), self._clock())
            return known.body

    def _look(self, run: str) -> _Look:
        folder = self._folder(run)
        made = _about(folder.path / CONFIG_FILE)
        with self._lock:
            self._forget_idle()
            look = self._looks.get(run)
            if look is None or look.made != made:
                if look is not None:
                    look.close()
                look = self._looks[run] = _Look(folder, made, WatchedRun(folder), self._clock())
            look.asked = self._clock()
            return look

    def _folder(self, run: str) -> RunFolder:
        """Return the run of this name: one of those that are there, so that no name leads elsewhere."""
        known = {folder.name: folder for folder in all_runs(self._runs_dir)}
        if run not in known:
            raise UnknownNameError("run", run, known, where=f"in {self._runs_dir.name}")
        return known[run]

    def _forget_idle(self) -> None:
        for name, look in list(self._looks.items()):
            if self._clock() - look.asked > IDLE_SECONDS:
                look.close()
                del self._looks[name]

    def _summary(self, folder: RunFolder) -> dict[str, Plain]:
        """Return a run as one line; one that has ended is read again only when its files have changed."""
        signature = _signature(folder)
        known = self._settled.get(folder.name)
        if known is not None and known[0] == signature:
            return known[1]
        found = summary(folder)
        if found["status"] in _SETTLED:
            self._settled[folder.name] = (signature, found)
        else:
            self._settled.pop(folder.name, None)
        return found


def _curves(folder: RunFolder, clock: str, group: str) -> dict[str, Plain]:
    below: Clock = clock or usual_clock([folder])  # type: ignore[assignment]
    run = measured(folder, below, (lambda key: group_of(key) == group) if group else says_the_most)
    panels = by_group(run, below).get(group, []) if group else overview([run], below, 1)
    return {
        "version": 1,
        "clock": below,
        "clocks": CLOCK_NAMES,
        "panels": [{"title": panel.title, "figure": figure_of(panel, [folder.name])} for panel in panels],
        "groups": sorted({group_of(key) for key in run.known}),
    }


def _signature(folder: RunFolder) -> object:
    """Return what changes when a run goes on, is tagged, or is another one."""
    config, tags = folder.path / CONFIG_FILE, folder.path / TAGS_FOLDER
    files = (config, tags, folder.heartbeat_file, folder.result_file, folder.stats_file)
    log = _about(folder.stats_file.with_name(f"{folder.stats_file.name}-wal"))
    # To read is enough to make an empty one, or to remove it.
    return *map(_about, files), log if log and log[-1] else None


def _about(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
