"""A small run, trained once; tests damage copies of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.command import hookloop
from tests.faults.simulated_disk import scratch_folder


@pytest.fixture(scope="session")
def trained_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with three checkpoints, the last of which is final; to be copied, not changed."""
    runs = tmp_path_factory.mktemp("runs")
    settings = ["total_env_steps=2048", "checkpoints.schedule=every 1 epochs"]
    finished = hookloop("train", "cartpole", *settings, "--run", "small", "--runs-dir", str(runs), "--display", "off")
    assert finished.returncode == 0, finished.stderr
    return runs / "small"


@pytest.fixture
def run(trained_run: Path) -> Iterator[Path]:
    """A copy of the run, in memory."""
    with scratch_folder() as scratch:
        shutil.copytree(trained_run, scratch / "small")
        yield scratch / "small"
