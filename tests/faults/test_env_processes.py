"""Environments in processes of their own: they end with the run, and Ctrl-C, which reaches them too, costs nothing."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.faults.forked_commands import RESUME, SETTINGS, end_of, finished, signalled_after_a_checkpoint
from tests.faults.processes import command, require_none_left

LONGER = (*SETTINGS[2:-1], "env.num_envs=2", "total_env_steps=1500", "checkpoints.schedule=every 10 epochs")
NEW = ("train", "cartpole", *LONGER, "--run", "mine", "--display", "off")


def interrupted_and_killed(cwd: Path) -> bool:
    """Interrupt a run in all its processes, go on, and kill it; tell whether both came before its end."""
    cwd.mkdir()
    code = signalled_after_a_checkpoint((*NEW, "env.mode=async"), signal.SIGINT, cwd, in_group=True)
    require_none_left()
    if code != 130:
        return False
    assert "go on    hookloop train --resume runs/mine" in (cwd / f"{signal.SIGINT}.txt").read_text()
    code = signalled_after_a_checkpoint(RESUME, signal.SIGKILL, cwd)
    require_none_left()
    return code == -signal.SIGKILL


def test_a_run_with_processes_survives_ctrl_c_in_all_of_them_and_takes_them_along_when_it_is_killed(
    tmp_path: Path,
) -> None:
    folders = [tmp_path / str(attempt) for attempt in range(5)]  # one that was at its end before proves nothing
    folder = next(folder for folder in folders if interrupted_and_killed(folder))

    last = command("-m", "hookloop", *RESUME, output=folder / "output.txt", cwd=folder)
    assert last.code() == 0, last.output
    (tmp_path / "whole").mkdir()
    finished(*NEW, "env.mode=sync", cwd=tmp_path / "whole")  # the same episodes, in this process
    resumed, whole = end_of(folder), end_of(tmp_path / "whole")
    assert resumed["model.safetensors"] == whole["model.safetensors"]
    assert resumed["optimizer.safetensors"] == whole["optimizer.safetensors"]
