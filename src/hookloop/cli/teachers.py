"""Runs that teach: the policy of one run as the teacher in another."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hookloop.checkpoints import CheckpointManager
from hookloop.checkpoints.selectors import find
from hookloop.errors import ConfigError
from hookloop.rl.config import KickstartConfig, PolicyConfig, RLConfig
from hookloop.runs.folder import RunFolder, find_run


def pin_teachers(settings: RLConfig, runs_dir: Path) -> RLConfig:
    """Replace words such as ``latest`` by the checkpoint they stand for now: a resume must meet the same teacher."""
    losses = {
        name: _pinned(loss, runs_dir) if isinstance(loss, KickstartConfig) else loss
        for name, loss in settings.losses.items()
    }
    return settings.model_copy(update={"losses": losses})


def find_teacher(config: KickstartConfig) -> tuple[PolicyConfig, Mapping[str, Any]]:
    """Return the network of a teacher and its weights."""
    folder = RunFolder(Path(config.teacher))
    teacher = _settings(folder)
    if teacher.env.normalise_observations:
        raise ConfigError(
            f"The run {config.teacher!r} cannot teach: it saw observations scaled by statistics of its own. "
            "Train a teacher with env.normalise_observations=false."
        )
    _, state = CheckpointManager(folder.checkpoints).load(config.checkpoint)
    return teacher.policy, state["workload"]["learner"]["policy"]


def _pinned(loss: KickstartConfig, runs_dir: Path) -> KickstartConfig:
    folder = find_run(runs_dir, loss.teacher)
    manager = CheckpointManager(folder.checkpoints)
    checkpoint = find(manager.store, loss.checkpoint, manager.retention)
    return loss.model_copy(update={"teacher": str(folder.path), "checkpoint": checkpoint.name})


def _settings(folder: RunFolder) -> RLConfig:
    return RLConfig.model_validate(folder.read_config().settings)
