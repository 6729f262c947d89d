"""A game that workers play, against past versions too, is killed with everything at work, and gone on with."""

from __future__ import annotations

import signal
from pathlib import Path

import psutil
import pytest

pytest.importorskip("pyspiel", reason="OpenSpiel is not installed: pip install 'hookloop[games]'")

from tests.faults.endings import Ending, require_same
from tests.faults.forked_commands import RESUME, checkpoints, end_of, finished
from tests.faults.processes import command
from tests.faults.test_pool_processes import require_ended
from tests.waiting import wait_until

SETTINGS = (
    "total_env_steps=10240", "slots=4", "game.num_envs=16", "opponents.share=0.5", "opponents.every_epochs=2",
    "trainer.horizon=16", "checkpoints.schedule=every 4 epochs", "evaluation.schedule=every 1000 epochs",
)  # fmt: skip
NEW = ("train", "tictactoe", *SETTINGS, "--run", "mine", "--display", "off")


@pytest.mark.faults
@pytest.mark.parametrize("resumed_with", ["workers=2", "workers=0"])
def test_a_learner_that_is_killed_with_its_workers_at_play_ends_as_if_nobody_had_killed_it(
    resumed_with: str, tmp_path: Path
) -> None:
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    killed.mkdir()
    child = command("-m", "hookloop", *NEW, "workers=2", output=tmp_path / "killed.txt", cwd=killed)
    wait_until(lambda: len(checkpoints(killed).names()) >= 2 or child.ends_within(0.01))
    family = psutil.Process(child.pid).children(recursive=True)

    child.signal(signal.SIGKILL)

    assert child.code() == -signal.SIGKILL, child.output
    assert len(family) >= 2
    require_ended([process.pid for process in family])
    finished(*RESUME, resumed_with, cwd=killed)
    finished(*NEW, "workers=0", cwd=whole)
    require_same(bits_of(killed), bits_of(whole))


def bits_of(folder: Path) -> Ending:
    """Return how a run ended, without how many workers it had."""
    found = {path: value for path, value in end_of(folder).items() if not path.startswith("metrics/workers/")}
    metrics = {name: value for name, value in found["metrics"].items() if not name.startswith("workers/")}
    return {**found, "metrics": metrics}
