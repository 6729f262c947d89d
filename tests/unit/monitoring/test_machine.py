"""Samples of the machine, and the memory of what a trainer holds."""

from __future__ import annotations

import gc
import math
from itertools import count

import numpy as np
import pytest
import torch
from torch import nn

from hookloop.errors import RegistrationError
from hookloop.monitoring import MemoryMonitor, SystemMonitor, bytes_of
from hookloop.rl.optimizer import FlatAdam


def test_a_sample_holds_finite_figures_of_machine_process_and_disk() -> None:
    monitor = SystemMonitor()

    monitor.sample()
    monitor.sample()

    latest = monitor.latest()
    assert {"cpu_percent", "process_cpu_percent", "ram_percent", "process_rss_bytes", "process_threads",
            "process_open_files", "disk_free_bytes"} <= set(latest)  # fmt: skip
    assert all(math.isfinite(value) and value >= 0 for value in latest.values())
    assert latest["process_rss_bytes"] > 1e6


def test_only_the_latest_samples_are_kept_and_summed_up() -> None:
    numbers = count()
    monitor = SystemMonitor(history=3, probes=(lambda: {"number": float(next(numbers))},))

    for _ in range(10):
        monitor.sample()

    assert len(monitor) == 3
    assert monitor.latest()["number"] == 9.0
    assert monitor.summary()["number/mean"] == 8.0
    assert monitor.summary()["number/max"] == 9.0


def test_a_figure_that_cannot_be_had_is_left_out_and_the_others_stay() -> None:
    def broken() -> dict[str, float]:
        raise OSError("no such sensor")

    monitor = SystemMonitor(probes=(broken,), disk_path="/no/such/place")

    monitor.sample()

    assert monitor.problems["broken"] == "OSError: no such sensor"
    assert "disk" in monitor.problems
    assert "disk_free_bytes" not in monitor.latest()
    assert "ram_percent" in monitor.latest()


def test_before_the_first_sample_there_is_nothing_to_tell() -> None:
    monitor = SystemMonitor()

    assert monitor.latest() == {}
    assert monitor.summary() == {}
    monitor.stop()


@pytest.mark.parametrize("arguments", [{"interval_seconds": 0}, {"history": 0}, {"interval_seconds": math.nan}])
def test_senseless_settings_are_refused(arguments: dict[str, float]) -> None:
    with pytest.raises(RegistrationError, match="must be"):
        SystemMonitor(**arguments)  # type: ignore[arg-type]


class Buffer:
    """Something that knows its own size."""

    def memory_bytes(self) -> int:
        return 1234


def test_memory_is_counted_without_keeping_anything_alive() -> None:
    monitor = MemoryMonitor()
    model = nn.Linear(10, 10)
    buffer = Buffer()
    monitor.watch("model", model)
    monitor.watch("experience", buffer)

    assert monitor.sizes() == {"model": 440, "experience": 1234}
    del model
    gc.collect()
    assert monitor.sizes() == {"experience": 1234}
    monitor.forget()
    assert monitor.sizes() == {}


def test_what_cannot_be_held_weakly_is_not_watched() -> None:
    monitor = MemoryMonitor()

    assert not monitor.watch("list", [1, 2])
    assert monitor.sizes() == {}


def test_bytes_of_tensors_arrays_mappings_and_optimizers() -> None:
    model = nn.BatchNorm1d(4)  # 8 parameters; buffers of 8 numbers and one count of 8 bytes
    adam = torch.optim.Adam(model.parameters())
    model(torch.ones(2, 4)).sum().backward()
    adam.step()

    assert bytes_of(torch.zeros(3, dtype=torch.float64)) == 24
    assert bytes_of(np.zeros(3)) == 24
    assert bytes_of({"one": torch.zeros(2), "two": [torch.zeros(1)]}) == 12
    assert bytes_of(model) == 32 + 32 + 8
    assert bytes_of(adam) == 2 * 32 + 2 * 4
    assert bytes_of(FlatAdam(nn.Linear(2, 2))) == 2 * 24 + 4
    assert bytes_of(object()) is None
