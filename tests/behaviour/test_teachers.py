"""A run as the teacher of another, from the command line's settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookloop.checkpoints import CheckpointManager
from hookloop.cli.main import run
from hookloop.rl import build_trainer
from hookloop.rl.config import EnvConfig, KickstartConfig, RLConfig

TEACHER = '{"kind": "kickstart", "teacher": "teacher", "train_schedule": "until 4 epochs"}'
QUICK = ("total_env_steps=4000", "env.num_envs=8", "trainer.num_minibatches=2", "--display", "off")


def train(*arguments: str) -> int:
    return run(["train", *arguments])


def test_a_run_teaches_another_and_a_resume_meets_the_same_teacher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert train("cartpole", *QUICK, "--run", "teacher") == 0

    often = ("checkpoints.schedule=every 2 epochs", "checkpoints.keep_last=10")
    assert train("cartpole", *QUICK, "--run", "pupil", f"losses.teacher={TEACHER}", *often) == 0
    pinned = CheckpointManager("runs/teacher/checkpoints").load("final")[0].name
    assert f'"checkpoint": "{pinned}"' in Path("runs/pupil/config.json").read_text()
    whole = Path("runs/pupil/checkpoints")
    end = next(whole.glob("*-final"))
    weights = (end / "model.safetensors").read_bytes()

    assert train("--resume", "pupil", "--checkpoint", "epoch2", "--display", "off") == 0
    assert (whole / end.name / "model.safetensors").read_bytes() == weights


def test_a_teacher_that_does_not_exist_is_named_with_the_nearest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    assert train("cartpole", *QUICK, f"losses.teacher={TEACHER}") == 2
    assert "There is no run 'teacher'." in capsys.readouterr().err


def test_in_python_a_teacher_is_an_object() -> None:
    config = RLConfig(env=EnvConfig(id="CartPole-v1"), losses={"teacher": KickstartConfig(teacher="mine")})

    with pytest.raises(ValueError, match="in Python, build the teacher and give Kickstart"):
        build_trainer(config)
