"""What trackers cost: an epoch with one that hangs, fails or writes a file, against an epoch with none."""

from __future__ import annotations

import logging
import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path

from hookloop import HookContext, TrainingLoop
from hookloop.hooks import StatsHook, TrackerHook
from hookloop.stats import StatsClient
from hookloop.testing import ToyWorkload
from hookloop.trackers import JsonlTracker, Tracker

RUN = "bench"


class Silent:
    """A tracker that hangs until it may go, or fails at once."""

    def __init__(self, may_go: threading.Event | None = None) -> None:
        self._may_go = may_go

    def open(self, run: object) -> int:
        return 0

    def log(self, epochs: object) -> None:
        if self._may_go is None:
            raise ConnectionError("nobody there")
        self._may_go.wait()

    def finish(self, outcome: str) -> None:
        pass

    def close(self) -> None:
        pass


class Stamps:
    """Notes when the first and the last epoch ended."""

    stage = "evaluate"

    def __init__(self) -> None:
        self.taken: list[tuple[float, float]] = []

    def on_epoch_end(self, ctx: HookContext) -> None:
        self.taken.append((time.perf_counter(), time.process_time()))


def epoch_us(folder: Path, trackers: dict[str, Tracker], epochs: int) -> tuple[float, float]:
    stats, stamps = folder / "stats.sqlite", Stamps()
    folder.mkdir()
    hooks = [
        stamps,
        StatsHook(StatsClient(stats, run_id=RUN, flush_seconds=0.05)),
        TrackerHook(trackers, stats_url=stats, run_id=RUN, finish_seconds=0.0, interval_seconds=0.05),
    ]
    TrainingLoop(ToyWorkload(epochs, steps_per_epoch=64, num_envs=8), hooks).run()
    (began, began_cpu), (ended, ended_cpu) = stamps.taken[0], stamps.taken[-1]
    return (ended - began) * 1e6 / (epochs - 1), (ended_cpu - began_cpu) * 1e6 / (epochs - 1)


def tracked(folder: Path, turns: int, epochs: int) -> dict[str, float]:
    logging.getLogger("hookloop.trackers").setLevel(logging.ERROR)  # that they fail is what is wanted
    may_go = threading.Event()
    contenders: dict[str, Callable[[Path], dict[str, Tracker]]] = {
        "none": lambda run: {},
        "none_again": lambda run: {},
        "hung": lambda run: {"silent": Silent(may_go)},
        "failing": lambda run: {"silent": Silent()},
        "jsonl": lambda run: {"jsonl": JsonlTracker(run)},
    }
    epoch_us(folder / "warm", {}, epochs)
    taken: list[dict[str, tuple[float, float]]] = []
    for turn in range(turns):
        names = list(contenders) if turn % 2 == 0 else list(reversed(contenders))
        taken.append({name: epoch_us(folder / f"{turn}-{name}", contenders[name](folder), epochs) for name in names})
    may_go.set()
    found = {"us_per_epoch": statistics.median(each["none"][0] for each in taken)}
    for name in list(contenders)[1:]:
        for place, suffix in enumerate(("", "_cpu")):
            ratios = [each[name][place] / each["none"][place] for each in taken]
            found[f"{name}{suffix}"] = statistics.median(ratios)
            if name == "none_again":
                found[f"noise_high{suffix}"] = statistics.quantiles(ratios, n=20)[-1]
    return found
