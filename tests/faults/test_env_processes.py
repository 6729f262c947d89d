"""Environments in processes of their own: they end with the run, and Ctrl-C, which reaches them too, costs nothing."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.faults.forked_commands import RESUME, SETTINGS, checkpoints, end_of, finished
from tests.faults.processes import Child, command, require_none_left

LONGER = (*SETTINGS[2:-1], "env.num_envs=2", "total_env_steps=1500", "checkpoints.schedule=every 10 epochs")
NEW = ("train", "cartpole", *LONGER, "--run", "mine", "--display", "off")


def start_and_wait_for_a_checkpoint(arguments: tuple[str, ...], cwd: Path) -> Child:
    before = checkpoints(cwd).names()
    child = command("-m", "hookloop", *arguments, output=cwd / "output.txt", cwd=cwd)
    while set(checkpoints(cwd).names()) <= set(before):
        assert not child.ends_within(0.01), child.output
    return child


def test_a_run_with_processes_survives_ctrl_c_in_all_of_them_and_takes_them_along_when_it_is_killed(
    tmp_path: Path,
) -> None:
    child = start_and_wait_for_a_checkpoint((*NEW, "env.mode=async"), tmp_path)
    os.killpg(child.pid, signal.SIGINT)  # as a terminal does
    assert child.code() == 130, child.output
    assert "go on    hookloop train --resume runs/mine" in child.output
    require_none_left()

    assert start_and_wait_for_a_checkpoint(RESUME, tmp_path).kill()
    require_none_left()

    last = command("-m", "hookloop", *RESUME, output=tmp_path / "output.txt", cwd=tmp_path)
    assert last.code() == 0, last.output
    (tmp_path / "whole").mkdir()
    finished(*NEW, "env.mode=sync", cwd=tmp_path / "whole")  # the same episodes, in this process
    resumed, whole = end_of(tmp_path), end_of(tmp_path / "whole")
    assert resumed["model.safetensors"] == whole["model.safetensors"]
    assert resumed["optimizer.safetensors"] == whole["optimizer.safetensors"]
