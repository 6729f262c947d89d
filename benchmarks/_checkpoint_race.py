"""Time saves and loads in turns, and check that what is timed keeps every bit.

All contenders but the very first saves share one process, one state and its memory, and take turns, in another order
each round: with so few rounds, it would matter who always comes after whom. Before each turn garbage is collected;
after it what was saved is flushed and removed, so that nobody waits for the disk on another's behalf. A very first
save happens once in a process, so each round starts a process for it.
"""

from __future__ import annotations

import ctypes
import gc
import json
import mmap
import os
import pickle
import random
import shutil
import statistics
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import torch
from _checkpoint_peers import (
    FIRST,
    FIRST_RESERVED,
    LOADERS,
    OURS,
    SAVERS,
    MemoryCopy,
    Saver,
    Size,
    State,
    empty_like,
    flush_tree,
    tensors_of,
)
from _measure import Ratio
from safetensors import SafetensorError
from torch.distributed.checkpoint.api import CheckpointException

HERE = Path(__file__).parent
IDLE, IDLE_AGAIN = "no write", "no write again"
FLIPS = 4
# What a reader may raise about a damaged file; an error of another kind is a fault of the benchmark.
COMPLAINTS = (
    RuntimeError,
    ValueError,
    OSError,
    EOFError,
    KeyError,
    pickle.UnpicklingError,
    SafetensorError,
    CheckpointException,
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many times as long one contender takes as another, round by round, with a 95 % interval of the median."""

    ratio: Ratio
    low: float
    high: float


def compare(top: Sequence[float], bottom: Sequence[float]) -> Comparison:
    """Compare the seconds of two contenders that took turns."""
    ratios = [of_top / of_bottom for of_top, of_bottom in zip(top, bottom, strict=True)]
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(2_000))
    by_min = min(top) / min(bottom)
    return Comparison(Ratio(by_min, statistics.median(ratios)), low=medians[50], high=medians[-51])


@dataclass(slots=True)
class Saves:
    """The seconds of all saves of one contender, each from the call."""

    fsyncs: str
    stall: list[float] = field(default_factory=list)
    finished: list[float] = field(default_factory=list)
    durable: list[float] = field(default_factory=list)


@dataclass(slots=True)
class Loads:
    """The seconds of all loads of one contender, and what it made of flipped bits."""

    warm: list[float] = field(default_factory=list)
    cold: list[float] = field(default_factory=list)
    resident_after_drop: float = 0.0
    flips_noticed: int = 0
    flips_loaded: int = 0


@dataclass(slots=True)
class Steps:
    """Medians of training steps, one per round, the slowest step of all, and how long the writes took."""

    median: list[float] = field(default_factory=list)
    slowest: float = 0.0
    seconds: list[float] = field(default_factory=list)


class Bench:
    """All contenders for one size, with the state they save and the tensors they load into."""

    def __init__(self, size: Size, state: State, folder: Path, *, threads: int) -> None:
        self._size = size
        self._folder = folder
        self._threads = threads
        self.state = state
        self._into = empty_like(state)
        self._savers = {
            entry.name: entry.build(folder / f"saver-{number}")
            for number, entry in enumerate(SAVERS)
            if entry.is_installed
        }

    def close(self) -> None:
        for saver in self._savers.values():
            saver.close()

    def check(self) -> None:
        """Save and load with each contender while training goes on; refuse to time one that loses a bit."""
        for name, saver in self._savers.items():
            saver.save(self.state)
            self._negate()  # what training does next must not reach the checkpoint
            saver.finish()
            self._negate()
            self._load(name, saver.load)
            self._clear(saver)

    def time_saves(self, rounds: int) -> dict[str, Saves]:
        results = {name: Saves(saver.fsyncs) for name, saver in self._savers.items()}
        if OURS in self._savers:
            results |= {name: Saves("yes") for name in (FIRST, FIRST_RESERVED)}
        for number in range(rounds):
            for name in _order(results, number):
                gc.collect()
                seconds = self._save_first(name) if name in (FIRST, FIRST_RESERVED) else self._save(name)
                for figure, value in seconds.items():
                    getattr(results[name], figure).append(value)
        return results

    def time_loads(self, rounds: int) -> dict[str, Loads]:
        """Load what each contender has saved, with its files in memory and from the disk."""
        loaders = {row: place for row, place in LOADERS.items() if place[0] in self._savers}
        for name in {name for name, _ in loaders.values()}:
            self._savers[name].save(self.state)
            self._savers[name].finish()
            flush_tree(self._savers[name].folder)
        results = {row: Loads() for row in loaders}
        for number in range(rounds):
            for row in _order(results, number):
                saver = self._savers[loaders[row][0]]
                load = getattr(saver, loaders[row][1])
                read_all(saver.folder)
                results[row].warm.append(self._load(row, load))
                if hasattr(os, "posix_fadvise"):
                    resident = drop_from_cache(saver.folder)
                    results[row].resident_after_drop = max(results[row].resident_after_drop, resident)
                    results[row].cold.append(self._load(row, load))
        for row, result in results.items():
            saver = self._savers[loaders[row][0]]
            self._try_flips(saver.folder, getattr(saver, loaders[row][1]), result)
        for saver in self._savers.values():
            self._clear(saver)
        return results

    def time_steps(self, rounds: int) -> dict[str, Steps]:
        """Train a small network while nothing is written, and while each asynchronous contender writes."""
        names = [entry.name for entry in SAVERS if entry.is_asynchronous and entry.name in self._savers]
        results = {name: Steps() for name in (IDLE, *names, IDLE_AGAIN)}
        step = training_step()
        for number in range(rounds):
            for name in _order(results, number):
                gc.collect()
                with self._writing(name) as is_over:
                    samples = _steps_until(step, is_over)
                results[name].median.append(statistics.median(samples))
                results[name].slowest = max(results[name].slowest, *samples)
                results[name].seconds.append(sum(samples))
        return results

    @contextmanager
    def _writing(self, name: str) -> Generator[Callable[[], bool]]:
        """Start a save and tell when it is over; without a contender, it is over after half a second."""
        if name not in self._savers:
            deadline = perf_counter() + 0.5
            yield lambda: perf_counter() > deadline
            return
        saver = self._savers[name]
        saver.save(self.state)
        waiting = threading.Thread(target=saver.finish)
        waiting.start()
        try:
            yield lambda: not waiting.is_alive()
        finally:
            waiting.join()
        flush_tree(saver.folder)
        self._clear(saver)

    def _save(self, name: str) -> dict[str, float]:
        saver = self._savers[name]
        started = perf_counter()
        saver.save(self.state)
        stall = perf_counter() - started
        saver.finish()
        finished = durable = perf_counter() - started
        if saver.fsyncs != "yes":
            flush_tree(saver.folder)
            durable = perf_counter() - started
        self._clear(saver)
        return {"stall": stall, "finished": finished, "durable": durable}

    def _save_first(self, name: str) -> dict[str, float]:
        folder = self._folder / "first"
        kind = "reserved" if name == FIRST_RESERVED else "plain"
        script = [sys.executable, str(HERE / "_checkpoint_peers.py"), str(folder), self._size.name]
        done = subprocess.run([*script, str(self._threads), kind], stdout=subprocess.PIPE, text=True, check=True)
        shutil.rmtree(folder)
        return json.loads(done.stdout)

    def _load(self, name: str, load: Callable[[State], None]) -> float:
        """Time a load into tensors that hold something else, and compare every bit with what was saved."""
        self._blank()
        gc.collect()
        started = perf_counter()
        load(self._into)
        seconds = perf_counter() - started
        if not self._is_loaded():
            raise RuntimeError(f"{name} did not load what was saved: there is nothing to compare.")
        return seconds

    def _try_flips(self, folder: Path, load: Callable[[State], None], result: Loads) -> None:
        """Flip one bit at a time, spread over the largest file, and see who notices."""
        path = max((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
        for number in range(FLIPS):
            offset = path.stat().st_size * (2 * number + 1) // (2 * FLIPS)
            self._blank()
            _flip(path, offset)
            try:
                load(self._into)
            except COMPLAINTS:
                result.flips_noticed += 1
            else:
                result.flips_loaded += not self._is_loaded()
            gc.collect()  # an error keeps the file mapped
            _flip(path, offset)
        self._load("a file mended again", load)

    def _is_loaded(self) -> bool:
        pairs = zip(tensors_of(self.state), tensors_of(self._into), strict=True)
        return all(torch.equal(saved.view(torch.int32), loaded.view(torch.int32)) for saved, loaded in pairs)

    def _blank(self) -> None:
        for tensor in tensors_of(self._into):
            tensor.zero_()

    def _negate(self) -> None:
        for tensor in tensors_of(self.state):
            tensor.neg_()

    @staticmethod
    def _clear(saver: Saver) -> None:
        if not isinstance(saver, MemoryCopy):
            saver.clear()


def training_step() -> Callable[[], None]:
    """Return one step of a small network: two matrices, forward, backward and SGD."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    inputs, wanted = torch.randn(64, 256), torch.randn(64, 256)

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), wanted).backward()
        optimizer.step()

    for _ in range(100):
        step()
    return step


def read_all(folder: Path) -> None:
    """Bring every file of a folder into the page cache."""
    for path in (path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb", buffering=0) as file:
            while file.read(1 << 24):
                pass


def drop_from_cache(folder: Path) -> float:
    """Ask the kernel to forget the files of a folder; return the part of their pages that it still holds."""
    gc.collect()  # a page that is mapped stays
    resident = pages = 0
    for path in (path for path in folder.rglob("*") if path.is_file() and path.stat().st_size):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            held, size = _resident_pages(descriptor)
        finally:
            os.close(descriptor)
        resident += held
        pages += size
    return resident / pages


def _resident_pages(descriptor: int) -> tuple[int, int]:
    with mmap.mmap(descriptor, 0, access=mmap.ACCESS_COPY) as content:
        pages = -(-len(content) // mmap.PAGESIZE)
        states = (ctypes.c_ubyte * pages)()
        start = ctypes.c_char.from_buffer(content)
        libc = ctypes.CDLL(None, use_errno=True)
        failed = libc.mincore(ctypes.c_void_p(ctypes.addressof(start)), ctypes.c_size_t(len(content)), states)
        del start  # a map that is pointed to cannot be closed
        if failed:
            raise OSError(ctypes.get_errno(), "mincore cannot tell which pages are in memory")
        return sum(state & 1 for state in states), pages


def _flip(path: Path, offset: int) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1]))


def _steps_until(step: Callable[[], None], is_over: Callable[[], bool]) -> list[float]:
    samples: list[float] = []
    while not samples or not is_over():
        started = perf_counter()
        step()
        samples.append(perf_counter() - started)
    return samples


def _order(names: Mapping[str, object], number: int) -> list[str]:
    return random.Random(number).sample(list(names), len(names))
