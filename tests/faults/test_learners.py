"""Learners that are killed, interrupted or orphaned under torchrun: the job ends, nothing is left, and it goes on."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from hookloop.checkpoints import CheckpointStore
from hookloop.monitoring import read_beat
from tests.faults.endings import Ending, ending, require_same
from tests.faults.processes import Child
from tests.ranks import QUIET, RESUME, RL, finished, processes_in, torchrun
from tests.waiting import wait_until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]

# Slow enough to be met in the middle; and, if told to, with a rank that dies in the first attempt of torchrun.
SCRIPT = """
import os, sys, time
from hookloop.cli.main import main
from hookloop.rl.collector import Collector
collect = Collector.collect
def slow(self, loop):
    time.sleep(0.2)
    is_first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
    if os.environ.get("DIES") == os.environ["RANK"] and is_first and loop.clocks.epochs == 8:
        os._exit(9)
    collect(self, loop)
Collector.collect = slow
main(sys.argv[1:])
"""


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Ending:
    cwd = tmp_path_factory.mktemp("straight")
    finished(*RL, *QUIET, cwd=cwd)
    return ending(cwd / "runs" / "mine" / "checkpoints")


def start(cwd: Path) -> Child:
    """Start a run and wait until it has saved something."""
    (cwd / "script.py").write_text(SCRIPT)
    child = torchrun("--", "script.py", *RL, *QUIET, cwd=cwd)
    wait_until(lambda: checkpoints(cwd).folder.is_dir() and bool(checkpoints(cwd).names()), seconds=120)
    return child


def checkpoints(cwd: Path) -> CheckpointStore:
    return CheckpointStore(cwd / "runs" / "mine" / "checkpoints")


def require_exact_resume(cwd: Path, expected: Ending) -> None:
    wait_until(lambda: not processes_in(cwd))
    finished(*RESUME, cwd=cwd)
    require_same(ending(checkpoints(cwd).folder), expected)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_rank_ends_the_job_and_the_run_goes_on_exactly(rank: int, tmp_path: Path, expected: Ending) -> None:
    child = start(tmp_path)
    beat = tmp_path / "runs" / "mine" / ("heartbeat.json" if rank == 0 else "heartbeat-rank1.json")

    os.kill(read_beat(beat).pid, signal.SIGKILL)

    assert child.code() != 0
    assert f"rank      : {rank} (local_rank: {rank})" in child.output.partition("Root Cause")[2]
    require_exact_resume(tmp_path, expected)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_signal_to_torchrun_ends_all_ranks_with_a_checkpoint(number: int, tmp_path: Path, expected: Ending) -> None:
    child = start(tmp_path)

    child.signal(number)

    assert child.code() != 0
    wait_until(lambda: not processes_in(tmp_path))
    found = checkpoints(tmp_path).read_latest()
    assert found is not None
    assert found[0].manifest.kind == "interrupted"
    require_exact_resume(tmp_path, expected)


def test_torchrun_starts_a_job_again_that_a_rank_has_ended(tmp_path: Path, expected: Ending) -> None:
    child = start(tmp_path)
    child.signal(signal.SIGTERM)
    child.code()

    again = torchrun("--max-restarts", "1", "--", "script.py", *RESUME, cwd=tmp_path, extra={"DIES": "1"})

    assert again.code(120) == 0, again.output
    require_same(ending(checkpoints(tmp_path).folder), expected)
