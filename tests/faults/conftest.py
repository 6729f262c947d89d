"""What holds after every fault: nothing runs, nothing is locked, nothing is half done; and a small run to damage."""

from __future__ import annotations

import shutil
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from hookloop.storage.lock import LOCK_NAME, RunLock
from tests.faults.command import hookloop
from tests.faults.processes import require_none_left, started
from tests.faults.simulated_disk import scratch_folder


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path) -> Generator[None]:
    started.clear()
    yield
    require_none_left()
    for lock in tmp_path.rglob(LOCK_NAME):
        with RunLock(lock.parent):
            pass
    half_done = [path for pattern in (".tmp-*", ".trash-*", ".*.json.*") for path in tmp_path.rglob(pattern)]
    assert not half_done, f"half done: {half_done}"


@pytest.fixture(scope="session")
def trained_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with three checkpoints, the last of which is final; to be copied, not changed."""
    runs = tmp_path_factory.mktemp("runs")
    settings = ["total_env_steps=2048", "checkpoints.schedule=every 1 epochs", "env.num_envs=32"]
    finished = hookloop("train", "cartpole", *settings, "--run", "small", "--runs-dir", str(runs), "--display", "off")
    assert finished.returncode == 0, finished.stderr
    return runs / "small"


@pytest.fixture
def run(trained_run: Path) -> Iterator[Path]:
    """A copy of the run, in memory."""
    with scratch_folder() as scratch:
        shutil.copytree(trained_run, scratch / "small")
        yield scratch / "small"
