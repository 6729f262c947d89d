"""Measure what it costs to observe a run: the statistics, for their caller and their readers, trackers, the display.

Run ``python benchmarks/observability.py [--quick] [--json FILE]`` with hookloop importable.

- Written: rows per second from the first call that logs to the end of the ``flush`` that makes all of them durable, in
  an SQLite file, 20 metrics to a call. The caller logs as fast as it can and shares the interpreter with the writing
  thread, so this is the worst case for both. Once by the clock, and once by processor time, which a busy machine does
  not change.
- Logged, writer idle: what a call takes from training, per row, when the thread has nothing to do.
- Logged, writer busy: the same at a pace of one call per millisecond, while the thread commits every 10 ms; by call.
- Read: how long another process waits for the newest value of every metric and for one whole curve, while a run writes.
- Tracked: an epoch of a small workload that keeps statistics, with no tracker, with one that hangs, one that fails and
  one that writes metrics.jsonl. Runs take turns, forwards and backwards; each is divided by the run without a tracker
  of the same turn, once by the clock and once by the processor time of the whole process. A second run without a
  tracker gives the noise floor. Trackers look 20 times a second here, not once.
- Display: the processor time of the thread that draws, as a share of one core, on a pseudo-terminal, wide and small,
  four times per second with every figure changed each time; the floor is a display to which nothing is published.
  Beside it, what the hook takes from training: per epoch that shows nothing, and per view.

A target is met by the median of the rounds. A hung tracker costs nothing that can be measured if the median of its
ratios is below the 95th percentile of those of the noise floor.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _display_cost import display
from _measure import describe_environment, print_environment, write_json
from _tracker_cost import tracked

from hookloop.stats import StatsReader, StatsStore

METRICS = 20
RUN = "bench"
TARGET_ROWS_PER_S = 100_000
TARGET_CALLER_US = 2.0
TARGET_DISPLAY_SHARE = 0.03


def row_of(epoch: int) -> dict[str, Any]:
    clocks = {"epochs": epoch, "env_steps": epoch * 2048, "optimizer_steps": epoch * 32, "seconds": epoch * 0.1}
    values = {f"group/metric_{number}": epoch * 0.5 + number for number in range(METRICS)}
    return {"hook": "learner", "event": "epoch_end", "clocks": clocks, "values": values}


def written(folder: Path, calls: int) -> dict[str, float]:
    rows = [row_of(epoch) for epoch in range(1, calls + 1)]
    with StatsStore(folder / "written.sqlite", run_id=RUN) as store:
        store.begin_attempt(1, {"epochs": 0})
        began, began_cpu = time.perf_counter(), time.process_time()
        for row in rows:
            store.log_metrics([row])
            store.log_epoch(row["clocks"])
        store.flush()
        seconds, seconds_cpu = time.perf_counter() - began, time.process_time() - began_cpu
        assert store.health().dropped == 0
    count = calls * (METRICS + 1)
    size = (folder / "written.sqlite").stat().st_size
    return {"rows_per_s": count / seconds, "rows_per_cpu_s": count / seconds_cpu, "bytes_per_row": size / count}


def logged_idle(folder: Path, calls: int) -> dict[str, float]:
    rows = [row_of(epoch) for epoch in range(1, calls + 1)]
    options = {"batch_rows": 400_000, "flush_seconds": 3600.0}
    with StatsStore(folder / "idle.sqlite", run_id=RUN, **options) as store:
        store.begin_attempt(1, {"epochs": 0})
        began = time.perf_counter()
        for row in rows:
            store.log_metrics([row])
        seconds = time.perf_counter() - began
    return {"us_per_row": seconds * 1e6 / (calls * METRICS), "us_per_call": seconds * 1e6 / calls}


def logged_busy(folder: Path, calls: int) -> dict[str, float]:
    took: list[float] = []
    with StatsStore(folder / "busy.sqlite", run_id=RUN, flush_seconds=0.01) as store:
        store.begin_attempt(1, {"epochs": 0})
        for epoch in range(1, calls + 1):
            rows = [row_of(epoch)]
            began = time.perf_counter()
            store.log_metrics(rows)
            took.append((time.perf_counter() - began) * 1e6)
            store.log_epoch(rows[0]["clocks"])
            time.sleep(0.001)
    cuts = statistics.quantiles(took, n=100)
    return {"us_per_call_p50": cuts[49], "us_per_call_p99": cuts[98]}


def read(folder: Path, reads: int) -> dict[str, float]:
    path = folder / "read.sqlite"
    with StatsStore(path, run_id=RUN, flush_seconds=0.01) as store:
        store.begin_attempt(1, {"epochs": 0})
        for epoch in range(1, 5_001):
            store.log_metrics([row_of(epoch)])
            store.log_epoch(row_of(epoch)["clocks"])
        store.flush()
        words = [sys.executable, __file__, "--reader", str(path), str(reads)]
        reader = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        while reader.poll() is None:
            epoch += 1
            store.log_metrics([row_of(epoch)])
            store.log_epoch(row_of(epoch)["clocks"])
            time.sleep(0.002)
    assert reader.stdout is not None
    return json.loads(reader.stdout.read())


def read_from_here(path: Path, reads: int) -> dict[str, float]:
    reader = StatsReader(path)
    calls: dict[str, Callable[[], object]] = {
        "latest": lambda: reader.latest(RUN),
        "curve_of_5000": lambda: reader.metric(RUN, "group/metric_3"),
        "rows_after": lambda: reader.rows_after(RUN, 4_900, 1_000),
    }
    found: dict[str, float] = {}
    for name, call in calls.items():
        call()
        took: list[float] = []
        for _ in range(reads):
            began = time.perf_counter()
            call()
            took.append((time.perf_counter() - began) * 1e3)
        cuts = statistics.quantiles(took, n=100)
        found[f"{name}_ms_p50"], found[f"{name}_ms_p99"] = cuts[49], cuts[98]
    return found


def median_of(rounds: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}


def measured(*, is_quick: bool) -> dict[str, dict[str, float]]:
    calls, rounds = (2_000, 3) if is_quick else (10_000, 7)
    parts: dict[str, Callable[[Path], dict[str, float]]] = {
        "written": lambda folder: written(folder, calls),
        "logged_idle": lambda folder: logged_idle(folder, calls),
        "logged_busy": lambda folder: logged_busy(folder, 500 if is_quick else 3_000),
        "read": lambda folder: read(folder, 50 if is_quick else 300),
        "tracked": lambda folder: tracked(folder, 8 if is_quick else 60, 100 if is_quick else 250),
        "display": lambda _folder: display(5.0 if is_quick else 20.0),
    }
    found: dict[str, dict[str, float]] = {}
    for name, part in parts.items():
        taken: list[dict[str, float]] = []
        for _ in range(rounds if name in ("written", "logged_idle", "display") else 1):
            with tempfile.TemporaryDirectory() as folder:
                taken.append(part(Path(folder)))
        found[name] = median_of(taken)
    return found


def verdicts(figures: dict[str, dict[str, float]]) -> list[tuple[str, str, float, bool]]:
    rows, rows_cpu = figures["written"]["rows_per_s"], figures["written"]["rows_per_cpu_s"]
    caller = figures["logged_idle"]["us_per_row"]
    hung, high = figures["tracked"]["hung"], figures["tracked"]["noise_high"]
    hung_cpu, high_cpu = figures["tracked"]["hung_cpu"], figures["tracked"]["noise_high_cpu"]
    percent, limit = figures["display"]["whole_percent"], 100 * TARGET_DISPLAY_SHARE
    return [
        ("rows written per second, durable", f">= {TARGET_ROWS_PER_S:,}", rows, rows >= TARGET_ROWS_PER_S),
        ("the same per second of processor time", f">= {TARGET_ROWS_PER_S:,}", rows_cpu, rows_cpu >= TARGET_ROWS_PER_S),
        ("microseconds per logged row, writer idle", f"<= {TARGET_CALLER_US}", caller, caller <= TARGET_CALLER_US),
        ("epoch with a hung tracker / with none", f"<= {high:.3f}", hung, hung <= high),
        ("the same by processor time", f"<= {high_cpu:.3f}", hung_cpu, hung_cpu <= high_cpu),
        ("percent of one core for the display", f"<= {limit:g}", percent, percent <= limit),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="What it costs to observe a run.")
    parser.add_argument("--quick", action="store_true", help="fewer rows and rounds: under a minute, noisier figures")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything to FILE as well")
    parser.add_argument("--reader", nargs=2, metavar=("PATH", "READS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.reader:
        print(json.dumps(read_from_here(Path(options.reader[0]), int(options.reader[1]))))
        return
    environment = describe_environment({"SQLAlchemy": "sqlalchemy", "hookloop": "hookloop"})
    environment["pinned_to_one_core"] = False  # the thread that writes and the process that reads need a second one
    print_environment(environment)
    figures = measured(is_quick=options.quick)
    for part, values in figures.items():
        print(f"\n{part}")
        for name, value in values.items():
            print(f"  {name:24}{value:14,.2f}")
    print()
    for promise, limit, value, is_met in verdicts(figures):
        print(f"{promise:44}{limit:>14}{value:14,.2f}  {'met' if is_met else 'missed'}")
    if options.json:
        write_json(options.json, {"environment": environment, "figures": figures})


if __name__ == "__main__":
    main()
