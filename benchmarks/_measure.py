"""Time small calls fairly: interleaved windows, no garbage collection, a noise floor beside every table.

A contender is a function that makes ``calls`` calls in a ``for`` loop. All contenders take turns, one window
of about 2 ms each, so that a busy moment of the machine falls on all alike. A fifth of a window runs untimed
before each window: it refills caches that the previous contender emptied. The minimum over windows is the
cost on an undisturbed core with warm caches, the median is what a run on this machine sees.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import statistics
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter_ns
from types import FunctionType

WINDOW_NS = 2_000_000
MIN_WINDOWS = 20
Spin = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Contender:
    """One thing to time under one load; ``spin(calls)`` makes that many calls in a row."""

    name: str
    load: str
    spin: Spin


@dataclass(frozen=True, slots=True)
class Timing:
    """Nanoseconds per call, over all windows of one contender."""

    ns_min: float
    ns_median: float

    def minus(self, other: Timing) -> Timing:
        """Take away what another contender costs, such as the bare loop around the calls."""
        return Timing(self.ns_min - other.ns_min, self.ns_median - other.ns_median)

    def per(self, other: Timing) -> Ratio:
        """Divide by another contender's figures, minimum by minimum and median by median."""
        return Ratio(self.ns_min / other.ns_min, self.ns_median / other.ns_median)


@dataclass(frozen=True, slots=True)
class Ratio:
    """Two timings compared, once by minimum and once by median."""

    by_min: float
    by_median: float


@dataclass(frozen=True, slots=True)
class Target:
    """A promise, the ratio it is about, and its limit; the ratio is ``None`` when a side was not measured."""

    promise: str
    ratio: Ratio | None
    limit: Ratio
    is_upper_limit: bool = True

    @property
    def verdict(self) -> str:
        if self.ratio is None:
            return "not measured"
        sign = 1 if self.is_upper_limit else -1
        by_min = sign * self.ratio.by_min <= sign * self.limit.by_min
        by_median = sign * self.ratio.by_median <= sign * self.limit.by_median
        return "met" if by_min and by_median else "missed"

    def as_row(self) -> dict[str, object]:
        """Return the target and its verdict as plain values."""
        return {**asdict(self), "verdict": self.verdict}


def time_interleaved(contenders: Sequence[Contender], *, seconds: float) -> list[Timing]:
    """Time every contender once per round, in turn, until the time is up; return one timing for each."""
    deadline_ns = perf_counter_ns() + seconds * 1e9
    spins = [_with_own_code(contender.spin) for contender in contenders]
    calls = [_calls_per_window(spin) for spin in spins]
    samples: list[list[float]] = [[] for _ in spins]
    while perf_counter_ns() < deadline_ns or len(samples[0]) < MIN_WINDOWS:
        for spin, window_calls, sample in zip(spins, calls, samples, strict=True):
            spin(window_calls // 5 or 1)
            sample.append(_elapsed_ns(spin, window_calls) / window_calls)
    return [Timing(min(sample), statistics.median(sample)) for sample in samples]


def time_steps(steps: Sequence[Callable[[], None]], *, rounds: int, block: int = 50) -> list[list[int]]:
    """Time each single step in nanoseconds; the contenders alternate every ``block`` steps."""
    samples: list[list[int]] = [[] for _ in steps]
    for _ in range(rounds):
        for step, sample in zip(steps, samples, strict=True):
            for _ in range(block):
                started = perf_counter_ns()
                step()
                sample.append(perf_counter_ns() - started)
    return samples


def middle(copies: Sequence[Timing]) -> Timing:
    """Return the median over copies of one thing: where a copy lies in memory can cost or save a fifth."""
    return Timing(
        statistics.median(copy.ns_min for copy in copies),
        statistics.median(copy.ns_median for copy in copies),
    )


def noise_floor(copies: Sequence[Timing]) -> Ratio:
    """Return the relative spread between copies of one thing, which differ in nothing but luck."""
    return Ratio(_spread([copy.ns_min for copy in copies]), _spread([copy.ns_median for copy in copies]))


@contextmanager
def undisturbed() -> Generator[None]:
    """Switch garbage collection off and stay on one core while the block runs."""
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    gc.collect()
    gc.disable()
    if cores:
        os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        gc.enable()
        if cores:
            os.sched_setaffinity(0, cores)


def describe_environment(modules: Mapping[str, str]) -> dict[str, object]:
    """Collect what a reader needs to judge the figures.

    Args:
        modules: Distribution name to the module it provides. A missing one gets version ``None``.
    """
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "machine": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "load_average": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "pinned_to_one_core": hasattr(os, "sched_setaffinity"),
        "packages": {name: _version_of(name, module) for name, module in modules.items()},
    }


def print_environment(environment: dict[str, object]) -> None:
    """Print the environment, one ``name: value`` per line."""
    for name, value in environment.items():
        if isinstance(value, dict):
            value = ", ".join(f"{package} {number or 'not installed'}" for package, number in value.items())
        print(f"{name}: {value}")


def print_targets(targets: Sequence[Target]) -> None:
    """Print every target with its number, met or not; met means by minimum and by median."""
    print(f"\n{'target':52}{'limit':>16}{'by min':>10}{'by median':>11}")
    for target in targets:
        bounds = dict.fromkeys((f"{target.limit.by_min:.3g}", f"{target.limit.by_median:.3g}"))
        limit = f"{'<=' if target.is_upper_limit else '>='} {' / '.join(bounds)}"
        ratio = target.ratio
        figures = f"{ratio.by_min:10.3f}{ratio.by_median:11.3f}" if ratio else f"{'-':>10}{'-':>11}"
        print(f"{target.promise:52}{limit:>16}{figures}  {target.verdict}")


def is_importable(module: str) -> bool:
    """Return whether a module can be found, without importing more than its parent packages."""
    parent = module.rpartition(".")[0]
    return (not parent or is_importable(parent)) and find_spec(module) is not None


def write_json(path: Path, report: dict[str, object]) -> None:
    """Write the report as strict JSON; a figure that is not a number is an error, not a file."""
    path.write_text(json.dumps(report, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def _with_own_code(spin: Spin) -> Spin:
    # CPython specialises each call site in place. Contenders built by one factory share its code object and
    # would undo each other's specialisation at every turn, which no training loop does to itself.
    assert isinstance(spin, FunctionType)
    return FunctionType(spin.__code__.replace(), spin.__globals__, spin.__name__, spin.__defaults__, spin.__closure__)


def _spread(values: Sequence[float]) -> float:
    return (max(values) - min(values)) / min(values)


def _version_of(package: str, module: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return "source tree" if is_importable(module) else None


def _calls_per_window(spin: Spin) -> int:
    calls = 1
    while True:
        # The best of three: a first call that builds something lazily would pass for a slow contender, and
        # its windows would then be too short to time.
        elapsed = min(_elapsed_ns(spin, calls) for _ in range(3))
        if elapsed >= WINDOW_NS / 2:
            return max(1, round(calls * WINDOW_NS / elapsed))
        calls *= 2


def _elapsed_ns(spin: Spin, calls: int) -> int:
    started = perf_counter_ns()
    spin(calls)
    return perf_counter_ns() - started
