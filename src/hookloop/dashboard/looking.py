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
from hookloop.dashboard.answers import Answer
from hookloop.dashboard.listing import Listing, about
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
from hookloop.runs.watched_run import WatchedRun

Plain = Any

CURVES_VERSION = 1
VIEW_SECONDS = 0.5
"""How old a view of a run may be that is given again."""
LIST_SECONDS = 2.0
"""How old the list of all runs may be."""
CURVES_SECONDS = 4.0
"""How old curves may be; drawing them anew costs more, and they move slowly."""
IDLE_SECONDS = 120.0
"""After how long without a question the statistics of a run are closed, and its curves forgotten."""
CLOSING_SECONDS = 2.0
"""How long whoever reads statistics is waited for before they are closed."""


@dataclass(slots=True)
class _Look:
    """A run that somebody looks at."""

    folder: RunFolder
    made: object
    """Which file its settings are: another one is another run of the same name."""
    watched: WatchedRun
    asked: float
    view: Answer = field(default_factory=Answer)
    curves: dict[tuple[str, str], Answer] = field(default_factory=dict[tuple[str, str], Answer])

    def close(self) -> None:
        self.view.between(self.watched.close, seconds=CLOSING_SECONDS)


class Looks:
    """Answers what pages ask of the runs in a folder, as JSON. Threads may share it.

    Args:
        runs_dir: The folder of all runs.
        clock: Seconds that only ever grow.
    """

    def __init__(self, runs_dir: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._runs_dir = runs_dir
        self._clock = clock
        self._lock = Lock()  # of what is below; nobody reads a file while holding it
        self._looks: dict[str, _Look] = {}
        self._listing = Listing(runs_dir)
        self._list = Answer()

    def close(self) -> None:
        """Let go of all statistics."""
        with self._lock:
            looks, self._looks = list(self._looks.values()), {}
        for look in looks:
            look.close()

    def runs(self) -> bytes:
        """Return all runs, the newest first, as ``hookloop runs`` has them."""
        return self._list.give(self._listing.read, seconds=LIST_SECONDS, now=self._clock)

    def view(self, run: str) -> bytes:
        """Return a run as it is now."""
        look = self._look(run)
        return look.view.give(
            lambda: orjson.dumps(run_as_plain(look.watched.view())), seconds=VIEW_SECONDS, now=self._clock
        )

    def curves(self, run: str, clock: str = "", group: str = "") -> bytes:
        """Return the figures that say the most of a run, and what other metrics there are; or those of one group.

        Args:
            run: The run's name.
            clock: The clock below; the usual one of such runs, if none is named.
            group: What stands before the first slash of the metrics that are wanted.
        """
        if clock and clock not in CLOCKS:
            raise UnknownNameError("clock", clock, CLOCKS)
        look = self._look(run)
        with self._lock:
            for key, each in list(look.curves.items()):
                if self._clock() - each.when > IDLE_SECONDS and not each.is_being_made:
                    del look.curves[key]
            answer = look.curves.setdefault((clock, group), Answer())
        return answer.give(
            lambda: orjson.dumps(_curves(look.folder, clock, group)), seconds=CURVES_SECONDS, now=self._clock
        )

    def _look(self, run: str) -> _Look:
        folder = self._folder(run)
        made = about(folder.path / CONFIG_FILE)
        with self._lock:
            look = self._looks.get(run)
        if look is None or look.made != made:
            look = self._begin(run, _Look(folder, made, WatchedRun(folder), self._clock()))
        with self._lock:
            look.asked = self._clock()
            idle = [name for name, each in self._looks.items() if self._clock() - each.asked > IDLE_SECONDS]
            closing = [self._looks.pop(name) for name in idle]
        for each in closing:
            each.close()
        return look

    def _begin(self, run: str, new: _Look) -> _Look:
        """Look at a run from now on, unless another thread has just begun."""
        with self._lock:
            known = self._looks.get(run)
            is_late = known is not None and known.made == new.made
            if not is_late:
                self._looks[run] = new
        if known is None:
            return new
        (new if is_late else known).close()
        return known if is_late else new

    def _folder(self, run: str) -> RunFolder:
        """Return the run of this name, which is directly in the folder: no name leads elsewhere."""
        is_name = bool(run) and not run.startswith(".") and not set(run) & set("/\\\0")
        if is_name and (self._runs_dir / run / CONFIG_FILE).is_file():
            return RunFolder(self._runs_dir / run)
        known = [folder.name for folder in all_runs(self._runs_dir)]
        raise UnknownNameError("run", run, known, where=f"in {self._runs_dir.name}")


def _curves(folder: RunFolder, clock: str, group: str) -> dict[str, Plain]:
    below: Clock = clock or usual_clock([folder])  # type: ignore[assignment]
    run = measured(folder, below, (lambda key: group_of(key) == group) if group else says_the_most)
    panels = by_group(run, below).get(group, []) if group else overview([run], below, 1)
    return {
        "version": CURVES_VERSION,
        "epoch": run.epochs[-1]["epoch"] if run.epochs else 0,
        "clock": below,
        "clocks": CLOCK_NAMES,
        "panels": [{"title": panel.title, "figure": figure_of(panel, [folder.name])} for panel in panels],
        "groups": sorted({group_of(key) for key in run.known}),
    }
