"""However a program with a pool ends, it takes its workers along, busy ones too."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest

from tests.faults.processes import Child, command, require_none_left
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]


def started(way: str, tmp_path: Path) -> tuple[Child, list[int]]:
    output = tmp_path / "output.txt"
    output.touch()
    child = command("-m", "tests.faults.pool_program", way, output=output, cwd=ROOT)
    while not child.output.endswith("\n"):
        assert not child.ends_within(0.01), child.output
    return child, [int(pid) for pid in child.output.splitlines()[0].split()]


def require_ended(pids: list[int]) -> None:
    for pid in pids:  # the end of an orphan is told to nobody here
        wait_until(lambda pid=pid: not is_running(pid), f"worker {pid} is left")


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("way", ["waits", pytest.param("waits-for-threads", marks=pytest.mark.faults)])
def test_a_program_that_is_killed_leaves_no_worker_behind(way: str, tmp_path: Path) -> None:
    child, workers = started(way, tmp_path)
    assert len(workers) == 2
    assert child.kill()
    require_ended(workers)
    require_none_left()


@pytest.mark.parametrize("way", ["waits", pytest.param("raises", marks=pytest.mark.faults)])
def test_a_program_that_fails_or_is_interrupted_ends_with_its_workers(way: str, tmp_path: Path) -> None:
    child, workers = started(way, tmp_path)
    if way == "waits":
        os.killpg(child.pid, signal.SIGINT)  # as a terminal does
    assert child.code() in (1, -signal.SIGINT), child.output
    require_ended(workers)
    require_none_left()
    assert child.output.count("Traceback") == 1, child.output  # workers say nothing of their own
