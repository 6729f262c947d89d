"""Compare what a checkpoint costs in hookloop and in the ways people save today: the stall, the write, the load.

Run ``python benchmarks/checkpoint.py [--quick] [--sizes 10M 100M] [--json FILE]`` with hookloop importable; peers:
``pip install lightning``. ``--folder`` must be on a real disk. The state is that of a GPT with Adam: float32 weights,
two moments and a step count for each. 100M parameters take 1.2 GB of disk per contender and 12 GB of memory in all.

What a figure contains. Contenders take turns in one process, see ``_checkpoint_race.py``. The stall is the
time until the save call returns, all that training has to wait for; the writer is idle before. ``finished`` is the
time from the call until the contender has written all, ``durable`` the time until it is on the disk: only hookloop
and ``torch.save, then fsync`` see to that by themselves. DCP flushes its files, not their names; for it and for those
that do not flush at all we do it afterwards, and the time counts. The yardstick is one copy of every tensor into
memory that was touched before. A very first save is one in a process that never saved, every round a new process;
``reserve`` gets its memory in the background, and is done when the save begins.

A load ends with the values in the tensors of the model and the optimizer. Warm: the files are in the page cache.
Cold: the kernel was told to forget them, and asked whether it has; if a twentieth of the pages stays, cold figures
are void. Of a virtual disk the host may know the files even then. Only hookloop's load checks every byte; what the
others notice is shown by flipping single bits, spread over the largest file.

Every contender has to load exactly the bits that it was given, with training going on between the call and the end
of the write, or nothing is printed; every timed load is compared as well. Ratios are medians over rounds with
a bootstrapped 95 % interval; "by min" compares the fastest. The noise floor is the same ratio between two equal
contenders. ``training`` is a small network on one thread, stepping while a contender writes in the background: the
stall is not part of it, and what slows it down is the writer's share of cores, memory and interpreter lock.

What is not equal: Lightning's plugins run without their Trainer, DCP in one process without a group. A stager that is
kept from save to save, as hookloop keeps its memory, is DCP at its best; by default it makes one for each save.
"""

from __future__ import annotations

import argparse
import logging
import os
import resource
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from _checkpoint_peers import (
    COPY,
    COPY_AGAIN,
    FIRST,
    FIRST_RESERVED,
    LOADERS,
    OURS,
    OURS_AGAIN,
    SAFETENSORS,
    SAVERS,
    SIZES,
    Size,
    make_state,
    quiet_peers,
    tensors_of,
)
from _checkpoint_race import FLIPS, IDLE, IDLE_AGAIN, Bench, Comparison, Loads, Saves, Steps, compare
from _measure import Ratio, Target, describe_environment, print_environment, print_targets, write_json

PACKAGES = {"hookloop": "hookloop", "torch": "torch", "safetensors": "safetensors", "lightning": "lightning"}
MEMORY_FILE_SYSTEMS = ("tmpfs", "ramfs")
MOST_RESIDENT = 0.05
COPIES_ON_DISK = 6


@dataclass(frozen=True, slots=True)
class Measured:
    """Everything that was measured with one size."""

    size: Size
    bytes: int
    tensors: int
    saves: dict[str, Saves]
    loads: dict[str, Loads]
    steps: dict[str, Steps]

    def stall(self, name: str, over: str) -> Comparison | None:
        if name not in self.saves or over not in self.saves:
            return None
        return compare(self.saves[name].stall, self.saves[over].stall)

    def load(self, name: str, over: str, kind: str) -> Comparison | None:
        """Compare two loads; None if one was not measured, or was to be cold and was not."""
        pair = [self.loads[row] for row in (name, over) if row in self.loads and getattr(self.loads[row], kind)]
        if len(pair) < 2 or (kind == "cold" and any(each.resident_after_drop > MOST_RESIDENT for each in pair)):
            return None
        return compare(getattr(pair[0], kind), getattr(pair[1], kind))

    def best_synchronous_peer(self, *, is_durable: bool) -> str | None:
        figure = "durable" if is_durable else "stall"
        peers = [entry.name for entry in SAVERS if entry.is_synchronous_peer and entry.name in self.saves]
        return min(peers, key=lambda name: statistics.median(getattr(self.saves[name], figure)), default=None)

    def as_row(self) -> dict[str, object]:
        return {**asdict(self), "size": asdict(self.size)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Check every contender, time them, print the tables and the targets, write the JSON report."""
    options = parse(arguments)
    torch.set_num_threads(options.threads)
    logging.getLogger("hookloop").setLevel(logging.ERROR)  # it says which files we have damaged
    quiet_peers()
    environment = describe_environment(PACKAGES) | {
        "pinned_to_one_core": False,
        "threads": options.threads,
        "rounds": options.rounds,
        "file_system": f"{file_system_of(options.folder)} ({options.folder})",
    }
    print_environment(environment)
    measured = []
    for name in options.sizes:
        measured.append(measure(SIZES[name], options.folder, rounds=options.rounds, threads=options.threads))
        print_saves(measured[-1])
        print_loads(measured[-1])
        print_steps(measured[-1])
    targets = [target for each in measured for target in list_targets(each)]
    print_targets(targets)
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1 if sys.platform == "linux" else 1 << 10) >> 10
    print(f"\npeak memory {peak_mib:,} MiB, load average {os.getloadavg()[0]:.1f} at the end")
    if options.json:
        environment |= {"load_average_at_end": os.getloadavg()[0], "peak_memory_mib": peak_mib}
        rows = [each.as_row() for each in measured]
        verdicts = [target.as_row() for target in targets]
        write_json(options.json, {"environment": environment, "sizes": rows, "targets": verdicts})


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What a checkpoint costs, in hookloop and in its peers.")
    parser.add_argument("--quick", action="store_true", help="10M alone, few rounds: about a minute on an idle machine")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, help="parameters; default: 10M 100M")
    parser.add_argument("--rounds", type=int, help="turns of every contender; default: 9, with --quick 3")
    parser.add_argument("--threads", type=int, default=1, help="threads that torch computes and copies with")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything to FILE as well")
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"), help="where to write; default: /var/tmp")
    options = parser.parse_args(arguments)
    options.sizes = options.sizes or (["10M"] if options.quick else ["10M", "100M"])
    options.rounds = options.rounds or (3 if options.quick else 9)
    if options.rounds < 1 or options.threads < 1:
        parser.error(f"--rounds and --threads must be at least 1, got {options.rounds} and {options.threads}")
    if not options.folder.is_dir():
        parser.error(f"--folder must exist, got {options.folder}")
    if (kind := file_system_of(options.folder)) in MEMORY_FILE_SYSTEMS:
        parser.error(f"--folder must be on a disk, got {options.folder}, which is {kind}: memory")
    return options


def file_system_of(folder: Path) -> str:
    """Return the type of the file system that holds a folder, where the system tells."""
    try:
        mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    except OSError:
        return "unknown"
    resolved = folder.resolve()
    holding = [(place, kind) for place, kind in mounts if resolved.is_relative_to(place)]
    # Of two mounts on one place the later one is seen.
    return max(enumerate(holding), key=lambda item: (len(item[1][0]), item[0]))[1][1] if holding else "unknown"


def measure(size: Size, folder: Path, *, rounds: int, threads: int) -> Measured:
    """Check and time all contenders with one size; leave nothing behind."""
    state = make_state(size)
    tensors = list(tensors_of(state))
    state_bytes = sum(tensor.nbytes for tensor in tensors)
    free = shutil.disk_usage(folder).free
    if free < COPIES_ON_DISK * state_bytes:
        raise OSError(f"{folder} has {free:,} bytes free, {size.name} needs {COPIES_ON_DISK * state_bytes:,}.")
    with tempfile.TemporaryDirectory(prefix="bench-checkpoint-", dir=folder) as place:
        bench = Bench(size, state, Path(place), threads=threads)
        try:
            bench.check()
            saves = bench.time_saves(rounds)
            steps = bench.time_steps(rounds)
            loads = bench.time_loads(rounds)
        finally:
            bench.close()
    return Measured(size, state_bytes, len(tensors), saves, loads, steps)


def list_targets(measured: Measured) -> list[Target]:
    """Compare our figures with what we promise."""
    name = measured.size.name

    def target(promise: str, comparison: Comparison | None, limit: float) -> Target:
        return Target(f"{name}: {promise}", comparison and comparison.ratio, Ratio(limit, limit))

    peer = measured.best_synchronous_peer(is_durable=False)
    durable_peer = measured.best_synchronous_peer(is_durable=True)
    over_durable = None
    if durable_peer and OURS in measured.saves:
        over_durable = compare(measured.saves[OURS].stall, measured.saves[durable_peer].durable)
    return [
        target("stall over one copy", measured.stall(OURS, COPY), 1.5),
        target(f"stall over {peer}", measured.stall(OURS, peer) if peer else None, 1 / 3),
        target(f"stall over {durable_peer} and fsync", over_durable, 1 / 3),
        target("warm load over safetensors", measured.load(OURS, SAFETENSORS, "warm"), 1.5),
        target("cold load over safetensors", measured.load(OURS, SAFETENSORS, "cold"), 1.5),
    ]


def print_saves(measured: Measured) -> None:
    """Print one row per contender, and the noise floor."""
    print(
        f"\n{measured.size.name}: {measured.tensors} tensors, {measured.bytes / 1e6:,.0f} MB; every contender loads "
        "the bits it was given"
    )
    print(
        f"{'save, ms':30}{'stall':>9}{'min':>9}{'x copy':>8}{'95 % interval':>15}{'finished':>10}{'durable':>10}"
        f"{'flushes':>9}"
    )
    for name in save_rows():
        if name not in measured.saves:
            print(f"{name:30}{'not installed':>18}")
            continue
        saves = measured.saves[name]
        writes = saves.fsyncs != "no file"
        written = f"{milliseconds(saves.finished)}{milliseconds(saves.durable)}" if writes else f"{'-':>10}{'-':>10}"
        print(
            f"{name:30}{milliseconds(saves.stall, 9)}{1e3 * min(saves.stall):9.1f}"
            f"{against(measured.stall(name, COPY))}{written}{saves.fsyncs:>9}"
        )
    print_noise("copy", measured.stall(COPY_AGAIN, COPY))
    print_noise("hookloop's stall", measured.stall(OURS_AGAIN, OURS))


def save_rows() -> list[str]:
    """Return every row of the table of saves, installed or not; the very first saves follow our others."""
    rows = [entry.name for entry in SAVERS]
    after = rows.index(OURS_AGAIN) + 1
    return [*rows[:after], FIRST, FIRST_RESERVED, *rows[after:]]


def print_loads(measured: Measured) -> None:
    """Print one row per way to load, the noise floor, and whether the cold files were cold."""
    print(
        f"\n{'load, ms':22}{'warm':>9}{'min':>9}{'x safet.':>9}{'95 % interval':>15}{'cold':>9}{'min':>9}"
        f"{'x safet.':>9}{'95 % interval':>15}   of {FLIPS} flipped bits"
    )
    for name in LOADERS:
        if name not in measured.loads:
            print(f"{name:22}{'not installed':>18}")
            continue
        loads = measured.loads[name]
        figures = ""
        for kind in ("warm", "cold"):
            seconds = getattr(loads, kind)
            figures += f"{milliseconds(seconds, 9)}{1e3 * min(seconds):9.1f}" if seconds else f"{'-':>9}{'-':>9}"
            figures += against(measured.load(name, SAFETENSORS, kind), 9)
        print(f"{name:22}{figures}   {loads.flips_noticed} noticed, {loads.flips_loaded} loaded as if sound")
    print_noise("warm load", measured.load(OURS_AGAIN, OURS, "warm"))
    print_noise("cold load", measured.load(OURS_AGAIN, OURS, "cold"))
    resident = max(loads.resident_after_drop for loads in measured.loads.values())
    verdict = "cold figures are void" if resident > MOST_RESIDENT else "the kernel obeyed"
    if not hasattr(os, "posix_fadvise"):
        verdict = "this system cannot be told to forget files"
    print(f"page cache after the drop: at most {resident:.1%} of a contender's pages left, {verdict}")


def print_steps(measured: Measured) -> None:
    """Print what a write in the background does to training."""
    print(f"\n{'training meanwhile':30}{'us/step':>9}{'x idle':>8}{'95 % interval':>15}{'slowest ms':>12}", end="")
    print(f"{'writing ms':>12}")
    idle = measured.steps[IDLE]
    for name, steps in measured.steps.items():
        writing = f"{'-':>12}" if name in (IDLE, IDLE_AGAIN) else milliseconds(steps.seconds, 12)
        print(
            f"{name:30}{1e6 * statistics.median(steps.median):9.0f}{against(compare(steps.median, idle.median))}"
            f"{1e3 * steps.slowest:12.1f}{writing}"
        )


def print_noise(what: str, comparison: Comparison | None) -> None:
    if comparison:
        ratio = comparison.ratio
        print(
            f"noise floor, {what}: {ratio.by_median:.3f} [{comparison.low:.3f}, {comparison.high:.3f}] between equal "
            f"contenders, {ratio.by_min:.3f} by the fastest"
        )


def milliseconds(seconds: Sequence[float], width: int = 10) -> str:
    return f"{1e3 * statistics.median(seconds):{width},.1f}"


def against(comparison: Comparison | None, width: int = 8) -> str:
    if comparison is None:
        return f"{'-':>{width}}{'':15}"
    interval = f"{comparison.low:.2f}-{comparison.high:.2f}"
    return f"{comparison.ratio.by_median:{width}.2f}{interval:>15}"


if __name__ == "__main__":
    main()
