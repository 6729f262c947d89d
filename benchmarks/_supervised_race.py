"""Race supervised trainers: each in a process of its own, all on one core, in turns of equal work, A B B A."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _measure import Ratio, is_importable
from _supervised_work import Work

WORKER = Path(__file__).parent / "_supervised_contenders.py"
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TOKENIZERS_PARALLELISM"), "1")
MODULES = {"lightning": "lightning.pytorch", "ignite": "ignite", "hookloop": "hookloop"}


@dataclass(slots=True)
class Entry:
    """A contender's place in a race, and what it did there; microseconds per step."""

    label: str
    contender: str
    setup_seconds: float = 0.0
    wall: list[float] = field(default_factory=list[float])
    cpu: list[float] = field(default_factory=list[float])
    losses: list[float] = field(default_factory=list[float])
    problem: str = ""

    def over(self, other: Entry) -> Ratio:
        """Return by how much CPU time a step takes longer: fastest against fastest, and in the median turn by turn."""
        paired = [mine - its for mine, its in zip(self.cpu, other.cpu, strict=True)]
        return Ratio(min(self.cpu) - min(other.cpu), statistics.median(paired))

    def per(self, other: Entry) -> Ratio:
        """Return the quotient of CPU times: fastest by fastest, and in the median turn by turn."""
        paired = [mine / its for mine, its in zip(self.cpu, other.cpu, strict=True)]
        return Ratio(min(self.cpu) / min(other.cpu), statistics.median(paired))

    def as_row(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__}


class Race:
    """All entries of one work."""

    def __init__(self, work: Work, entries: Sequence[tuple[str, str]]) -> None:
        self.work = work
        self.entries = [Entry(label, contender) for label, contender in entries]

    def __getitem__(self, label: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.label == label and entry.cpu), None)

    def run(self, rounds: int) -> None:
        """Start all, let them take turns, and end them; the first turn of each is warm-up."""
        running = [(entry, worker) for entry in self.entries if (worker := _start(entry, self.work)) is not None]
        for number in range(rounds + 1):
            for entry, worker in running if number % 2 else reversed(running):
                wall, cpu = _ask(worker, "go")
                if number:
                    entry.wall.append(wall / self.work.steps / 1_000)
                    entry.cpu.append(cpu / self.work.steps / 1_000)
        for entry, worker in running:
            entry.losses = _ask(worker, "end")
            worker.wait()

    def as_row(self) -> dict[str, object]:
        return {"work": self.work.name, "entries": [entry.as_row() for entry in self.entries]}


def _start(entry: Entry, work: Work) -> Any:
    module = entry.contender.partition("-")[0]
    if module != "bare" and not is_importable(MODULES.get(module, module)):
        entry.problem = "not installed"
        return None
    core = str(max(os.sched_getaffinity(0)))
    worker = subprocess.Popen(
        [sys.executable, "-W", "ignore", str(WORKER), entry.contender, work.name, core],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=os.environ | THREADS,
    )  # fmt: skip
    entry.setup_seconds = _read(worker, entry.label)[1] / 1e9
    return worker


def _ask(worker: Any, word: str) -> list[Any]:
    worker.stdin.write(f"{word}\n")
    worker.stdin.flush()
    return _read(worker, word)


def _read(worker: Any, what: str) -> list[Any]:
    line = worker.stdout.readline()
    if not line:
        raise RuntimeError(f"{' '.join(worker.args[3:])} ended at {what!r}; run it by hand to see why.")
    return json.loads(line)
