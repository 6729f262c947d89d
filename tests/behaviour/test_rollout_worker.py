"""A trainer and its rollout workers, as processes that share a folder and nothing else."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import torch

from hookloop.checkpoints.store import CheckpointStore
from tests.worker_processes import CHECKPOINTS, ENV, EPOCHS, GO, HORIZON, PATIENCE_SECONDS, make_trainer


@contextmanager
def started(*arguments: str) -> Generator[subprocess.Popen[str]]:
    command = [sys.executable, "-W", "error", "-m", "tests.worker_processes", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "nothing happened for a minute"
        time.sleep(0.02)


def test_workers_follow_a_trainers_checkpoints_stop_when_it_is_done_and_a_killed_one_changes_nothing(
    tmp_path: Path,
) -> None:
    folder = str(tmp_path)
    with (
        started("worker", folder, "a") as killed,
        started("worker", folder, "b") as worker,
        started("trainer", folder) as trainer,
    ):
        wait_until(lambda: all((tmp_path / f"{name}.delivered").exists() for name in "ab"))
        killed.send_signal(signal.SIGKILL)
        killed.wait(PATIENCE_SECONDS)
        (tmp_path / GO).touch()
        _, faults = trainer.communicate(timeout=PATIENCE_SECONDS)
        printed, worker_faults = worker.communicate(timeout=PATIENCE_SECONDS)

    assert (trainer.returncode, faults) == (0, "")
    assert (worker.returncode, worker_faults) == (0, "")
    told = json.loads(printed)
    assert (told["outcome"], told["reason"]) == ("stopped", "the run has ended: completed")
    versions = told["versions"]
    assert versions == sorted(versions)
    assert 1 <= versions[0] <= 2  # of a checkpoint, and never the weights a network begins with
    alone = make_trainer()
    alone.train(EPOCHS * HORIZON * ENV.num_envs)
    read = CheckpointStore(tmp_path / CHECKPOINTS).read_latest(sets_aside=False)
    assert read is not None
    trained = read[1]["workload"]["learner"]["policy"]
    expected = alone.policy.state_dict()
    assert trained.keys() == expected.keys()
    assert all(torch.equal(trained[name], expected[name]) for name in expected)
