"""Race worker processes against each other: equal work in every turn, turns interleaved A B B A.

Every contender trains in a process of its own and stops between updates to wait for its next turn, so a busy moment
of the machine falls on all alike and figures are compared turn by turn at the same stage of training. The first
tenth of the turns is warm-up and reported apart.
"""

from __future__ import annotations

import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import perf_counter

from _measure import Ratio
from _ppo_work import Outcome, Turn, Work

HERE = Path(__file__).parent
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Entry:
    """A contender's place in a race; two places of one contender show the noise."""

    label: str
    contender: str


@dataclass(slots=True)
class Result:
    """What one entry did: its turns, or why there are none."""

    entry: Entry
    turns: list[Turn] = field(default_factory=list)
    build_seconds: float = math.nan
    build_cpu_seconds: float = math.nan
    outcome: Outcome | None = None
    peak_memory_mib: int = 0
    problem: str = ""

    def passes(self, work: Work) -> bool:
        return self.outcome is not None and self.outcome.mean_return >= work.gate_return

    @property
    def steady_turns(self) -> list[Turn]:
        return self.turns[math.ceil(len(self.turns) / 10) :]

    @property
    def env_steps_per_second(self) -> float:
        return statistics.median(turn.env_steps / turn.seconds for turn in self.steady_turns)

    @property
    def best_env_steps_per_second(self) -> float:
        return max(turn.env_steps / turn.seconds for turn in self.steady_turns)

    @property
    def cpu_microseconds_per_env_step(self) -> float:
        return statistics.median(1e6 * turn.cpu_seconds / turn.env_steps for turn in self.steady_turns)

    @property
    def warm_up_seconds(self) -> float:
        """Return by how much the first turn took longer than the later ones."""
        return self.turns[0].seconds - statistics.median(turn.seconds for turn in self.steady_turns)

    def as_row(self, work: Work) -> dict[str, object]:
        row: dict[str, object] = {**asdict(self.entry), "problem": self.problem}
        if self.outcome and self.turns:
            row |= {
                "passes_gate": self.passes(work),
                "env_steps_per_second": self.env_steps_per_second,
                "best_env_steps_per_second": self.best_env_steps_per_second,
                "cpu_microseconds_per_env_step": self.cpu_microseconds_per_env_step,
                "build_seconds": self.build_seconds,
                "build_cpu_seconds": self.build_cpu_seconds,
                "warm_up_seconds": self.warm_up_seconds,
                "peak_memory_mib": self.peak_memory_mib,
                "outcome": asdict(self.outcome),
                "turns": [asdict(turn) for turn in self.turns],
            }
        return row


@dataclass(frozen=True, slots=True)
class Speedup:
    """How many times faster one entry is than another, turn by turn, with a 95 % interval of the median."""

    ratio: Ratio
    by_cpu: float
    low: float
    high: float


@dataclass(slots=True)
class Race:
    """All results of one work at one thread count."""

    work: Work
    results: list[Result]

    def find(self, label: str) -> Result | None:
        """Return the entry's result if it ran and learned; its figures are void otherwise."""
        found = (result for result in self.results if result.entry.label == label)
        return next((result for result in found if result.turns and result.passes(self.work)), None)

    def speedup(self, label: str, over: str) -> Speedup | None:
        fast, slow = self.find(label), self.find(over)
        if not fast or not slow:
            return None
        return compare(fast, slow)

    def as_row(self) -> dict[str, object]:
        return {"work": asdict(self.work), "entries": [result.as_row(self.work) for result in self.results]}


def compare(fast: Result, slow: Result) -> Speedup:
    """Compare two entries that passed their gate."""
    turns = zip(fast.steady_turns, slow.steady_turns, strict=True)
    ratios = [
        (of_slow.seconds / of_slow.env_steps) / (of_fast.seconds / of_fast.env_steps) for of_fast, of_slow in turns
    ]
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(2_000))
    best = fast.best_env_steps_per_second / slow.best_env_steps_per_second
    by_cpu = slow.cpu_microseconds_per_env_step / fast.cpu_microseconds_per_env_step
    return Speedup(Ratio(best, statistics.median(ratios)), by_cpu, low=medians[50], high=medians[-51])


def worker_environment(threads: int) -> dict[str, str]:
    """Return the environment variables of a contender's process."""
    environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(threads))
    # pip compiled the peers when it installed them. A source tree is compiled when it is first imported, unless this
    # variable forbids to keep the result; then it would be compiled anew at every start.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


class Worker:
    """A contender's process, which trains only while it has a turn."""

    def __init__(self, entry: Entry, work: Work, *, jax_python: str) -> None:
        is_rejax = entry.contender == "rejax"
        script = HERE / ("_ppo_rejax.py" if is_rejax else "_ppo_peers.py")
        command = [jax_python if is_rejax else sys.executable, str(script), entry.contender, work.to_json()]
        environment = worker_environment(work.threads)
        self.result = Result(entry)
        self._started = perf_counter()
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - closed in finish
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=self._errors, env=environment, text=True
        )

    @property
    def is_running(self) -> bool:
        return not self.result.problem

    def wait_until_built(self) -> None:
        if report := self._next_report():
            self.result.build_seconds = perf_counter() - self._started
            self.result.build_cpu_seconds = report["build_cpu_seconds"]

    def take_turn(self) -> None:
        self.grant()
        if report := self._next_report():
            self.result.turns.append(Turn(**report["turn"]))

    def grant(self) -> None:
        """Let the worker go on until it reports next."""
        assert self._process.stdin
        with suppress(BrokenPipeError):  # a worker that is gone is noticed when its report is read
            self._process.stdin.write("\n")
            self._process.stdin.flush()

    def finish(self) -> Result:
        """Let the worker end and return what it did."""
        if self.is_running:
            self.grant()
            if report := self._next_report():
                self.result.outcome = Outcome(**report["outcome"])
                self.result.peak_memory_mib = report["peak_memory_mib"]
        self.close()
        return self.result

    def close(self) -> None:
        """End the worker, whatever it does at the moment."""
        if self._errors.closed:
            return
        if self._process.poll() is None and not self.result.outcome:
            self._process.kill()
        self._process.communicate()
        self._errors.close()

    def _next_report(self) -> dict | None:
        assert self._process.stdout
        line = self._process.stdout.readline()
        report = json.loads(line) if line else {"missing": f"failed: {self._last_error()}"}
        if "missing" in report:
            self.result.problem = report["missing"]
            return None
        return report

    def _last_error(self) -> str:
        self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().strip().splitlines()
        return lines[-1] if lines else f"exit code {self._process.returncode} without a message"


def race(work: Work, entries: Sequence[Entry], *, jax_python: str, builds_at_once: bool = False) -> Race:
    """Let all entries do the same work in turns.

    Args:
        builds_at_once: Start all workers together. Saves time and makes their build times too long to quote.
    """
    workers: list[Worker] = []
    try:
        for entry in entries:
            workers.append(Worker(entry, work, jax_python=jax_python))
            if not builds_at_once:
                workers[-1].wait_until_built()
        if builds_at_once:
            for worker in workers:
                worker.wait_until_built()
        for turn in range(work.turns):
            for worker in workers if turn % 2 == 0 else reversed(workers):
                if worker.is_running:
                    worker.take_turn()
        return Race(work, [worker.finish() for worker in workers])
    finally:
        for worker in workers:
            worker.close()


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run from process start to process end."""

    label: str
    seed: int
    seconds: float
    outcome: Outcome | None
    problem: str = ""


def run_alone(entry: Entry, work: Work, *, jax_python: str) -> Attempt:
    """Run one worker without turns and time it from process start to process end."""
    started = perf_counter()
    worker = Worker(entry, replace(work, turn_updates=0), jax_python=jax_python)
    try:
        worker.grant()
        worker.wait_until_built()
        result = worker.finish()
    finally:
        worker.close()
    return Attempt(entry.label, work.seed, perf_counter() - started, result.outcome, result.problem)


def alternate(runs: Sequence[Callable[[int], Attempt]], seeds: Sequence[int]) -> list[Attempt]:
    """Run all with each seed, in the order A B B A; stop asking one that is not installed."""
    attempts: list[Attempt] = []
    missing: set[int] = set()
    for index, seed in enumerate(seeds):
        order = list(enumerate(runs))
        for position, run in order if index % 2 == 0 else reversed(order):
            if position in missing:
                continue
            attempts.append(run(seed))
            if attempts[-1].problem:
                missing.add(position)
    return attempts
