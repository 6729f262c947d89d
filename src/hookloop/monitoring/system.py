"""What the machine is doing: a thread that samples it, and a window of the latest samples."""

from __future__ import annotations

import functools
import sys
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hookloop.errors import RegistrationError
from hookloop.monitoring.ticker import Ticker

Sample = dict[str, float]
Probe = Callable[[], Sample]

# What psutil, the driver and torch raise when a figure cannot be had. A figure that is missing is left out.
PROBE_ERRORS = (OSError, RuntimeError, ValueError, AttributeError, NotImplementedError, AssertionError, KeyError)


class SystemMonitor:
    """Samples CPU, memory, disk, temperatures and GPUs while it runs.

    It never raises into training: a figure that cannot be had is left out, and ``problems`` says why. GPUs are looked
    at only if the program has imported torch itself.

    Args:
        interval_seconds: Seconds between two samples.
        history: How many samples to keep.
        disk_path: The place whose disk is watched; the working folder by default.
        probes: More figures: functions that return numbers by name, called on the thread of the monitor.
    """

    def __init__(
        self,
        interval_seconds: float = 1.0,
        history: int = 100,
        *,
        disk_path: str | Path = ".",
        probes: tuple[Probe, ...] = (),
    ) -> None:
        if isinstance(history, bool) or not isinstance(history, int) or history < 1:
            raise RegistrationError(f"history must be at least 1 sample, got {history!r}.")
        self.interval_seconds = interval_seconds
        self.problems: dict[str, str] = {}
        self._disk_path = str(disk_path)
        self._extra_probes = tuple(probes)
        self._samples: deque[Sample] = deque(maxlen=history)
        self._lock = threading.Lock()
        self._ticker = Ticker("hookloop-monitor", interval_seconds, self.sample)
        self._probes: tuple[Probe, ...] | None = None

    def start(self) -> None:
        """Start sampling; the first sample is taken before this returns."""
        self.sample()
        self._ticker.start()

    def stop(self) -> None:
        """Stop sampling; what was sampled stays."""
        self._ticker.stop()

    def sample(self) -> None:
        """Take one sample now."""
        if self._probes is None:
            self._probes = (*_machine_probes(self._disk_path), _gpu_probe, *self._extra_probes)
        found: Sample = {}
        for probe in self._probes:
            try:
                found.update(probe())
            except PROBE_ERRORS as error:
                self.problems[getattr(probe, "__name__", repr(probe))] = f"{type(error).__name__}: {error}"
        with self._lock:
            self._samples.append(found)

    def latest(self) -> Sample:
        """Return the newest sample; empty before the first."""
        with self._lock:
            return dict(self._samples[-1]) if self._samples else {}

    def summary(self) -> Sample:
        """Return ``NAME/mean`` and ``NAME/max`` of each figure over the samples that are kept."""
        with self._lock:
            samples = list(self._samples)
        columns: dict[str, list[float]] = {}
        for sample in samples:
            for name, value in sample.items():
                columns.setdefault(name, []).append(value)
        found: Sample = {}
        for name, values in columns.items():
            found[f"{name}/mean"] = sum(values) / len(values)
            found[f"{name}/max"] = max(values)
        return found

    def __len__(self) -> int:
        return len(self._samples)


def _machine_probes(disk_path: str) -> tuple[Probe, ...]:
    # Here and not above: who lists the hooks does not need it.
    import psutil

    def guarded(probe: Probe) -> Probe:
        """Turn psutil's own errors, which derive from nothing that others raise, into one that is expected."""

        @functools.wraps(probe)
        def guarded_probe() -> Sample:
            try:
                return probe()
            except psutil.Error as error:
                raise RuntimeError(str(error)) from error

        return guarded_probe

    machine = _Machine(psutil, disk_path)
    probes = (machine.cpu, machine.memory, machine.process, machine.open_files, machine.disk, machine.temperature)
    return tuple(map(guarded, probes))


class _Machine:
    """The figures of psutil."""

    def __init__(self, psutil: Any, disk_path: str) -> None:
        self._psutil = psutil
        self._process = psutil.Process()
        self._disk_path = disk_path
        # The first reading of a percentage is always 0; it begins the interval of the next one.
        psutil.cpu_percent()
        self._process.cpu_percent()
        self._has_interval = False

    def cpu(self) -> Sample:
        if not self._has_interval:
            self._has_interval = True
            return {}
        return {"cpu_percent": self._psutil.cpu_percent(), "process_cpu_percent": self._process.cpu_percent()}

    def memory(self) -> Sample:
        memory = self._psutil.virtual_memory()
        return {"ram_percent": memory.percent, "ram_available_bytes": float(memory.available)}

    def process(self) -> Sample:
        rss, threads = self._process.memory_info().rss, self._process.num_threads()
        return {"process_rss_bytes": float(rss), "process_threads": float(threads)}

    def open_files(self) -> Sample:
        return {"process_open_files": float(self._process.num_fds())}

    def disk(self) -> Sample:
        return {"disk_free_bytes": float(self._psutil.disk_usage(self._disk_path).free)}

    def temperature(self) -> Sample:
        return _temperatures(self._psutil)


def _temperatures(psutil: Any) -> Sample:
    """Return the hottest sensor of each chip, in degrees Celsius; nothing on machines without sensors."""
    read: Any = getattr(psutil, "sensors_temperatures", None)  # Linux alone has it
    if read is None:
        return {}
    hottest = {chip: max((each.current for each in sensors), default=None) for chip, sensors in read().items()}
    return {f"temperature_celsius/{chip}": float(value) for chip, value in hottest.items() if value is not None}


def _gpu_probe() -> Sample:
    """Return the figures of each GPU, if the program uses torch and torch has CUDA."""
    torch: Any = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    # Asked only once CUDA is in use: the question itself would take memory of the device.
    if cuda is None or not cuda.is_available() or not cuda.is_initialized():
        return {}
    found: Sample = {}
    for index in range(cuda.device_count()):
        free, total = cuda.mem_get_info(index)
        found[f"gpu{index}/memory_used_bytes"] = float(total - free)
        found[f"gpu{index}/memory_total_bytes"] = float(total)
        found[f"gpu{index}/memory_allocated_bytes"] = float(cuda.memory_allocated(index))
        found.update(_driver_figures(index))
    return found


def _driver_figures(index: int) -> Sample:
    """Return what only the driver knows; nothing without the package pynvml."""
    try:
        import pynvml  # pyright: ignore[reportMissingImports]  # optional
    except ModuleNotFoundError:
        return {}
    try:
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        return {
            f"gpu{index}/percent": float(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu),
            f"gpu{index}/temperature_celsius": float(
                pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)
            ),
        }
    except pynvml.NVMLError as error:
        raise RuntimeError(str(error)) from error
