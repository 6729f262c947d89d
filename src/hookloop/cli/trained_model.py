"""The model of a supervised run, with the weights of one of its checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookloop.cli.workloads import read_settings
from hookloop.errors import CheckpointError, ConfigError
from hookloop.runs.folder import RunFolder, find_run

if TYPE_CHECKING:
    from hookloop.supervised.config import SupervisedConfig

Live = Any

# Which command asks the model of a run something, by the data that it was trained on.
_ASKED_BY = {"charlm": "sample", "digits": "predict"}


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """A model that is ready to answer, and where its weights come from."""

    run: str
    checkpoint: str
    model: Live


def find_trained(runs_dir: Path, run: str, command: str) -> RunFolder:
    """Return the folder of a run that a command can ask; of another kind of run, say which command fits."""
    folder = find_run(runs_dir, run)
    config = folder.read_config()
    if config.workload == "selfplay":
        raise ConfigError(
            f"The run {folder.name!r} ({config.recipe}) plays a game, and has no answers to give; "
            f"'hookloop play {folder.name}' plays against it."
        )
    if config.workload == "sequences" and command == "sample":
        return folder
    if config.workload != "supervised":
        raise ConfigError(
            f"The run {folder.name!r} ({config.recipe}) is one of reinforcement learning, and has a policy to play "
            f"with, no answers to give; 'hookloop eval {folder.name}' scores it."
        )
    data = _settings(folder).data.kind
    if _ASKED_BY[data] != command:
        raise ConfigError(
            f"The run {folder.name!r} ({config.recipe}) was trained on {data}, which 'hookloop {command}' is not for; "
            f"'hookloop {_ASKED_BY[data]} {folder.name}' is."
        )
    return folder


def load_trained(folder: RunFolder, checkpoint: str) -> TrainedModel:
    """Build the model of a run with the weights of a checkpoint. Imports torch, and needs no data."""
    import torch

    from hookloop.checkpoints import CheckpointManager
    from hookloop.supervised.build import build_model, data_form

    settings = _settings(folder)
    torch.set_num_threads(folder.read_config().threads)
    found, state = CheckpointManager(folder.checkpoints, retention=folder.read_retention()).load(checkpoint)
    model = build_model(settings, data_form(settings))
    try:
        model.load_state_dict(state["workload"]["model"])
    except (RuntimeError, KeyError, TypeError) as error:
        raise CheckpointError(f"{found.path} does not hold the weights of the run's model: {error}.") from error
    return TrainedModel(folder.name, found.name, model.eval())


def _settings(folder: RunFolder) -> SupervisedConfig:
    config = folder.read_config()
    return read_settings(config.workload, config.settings)  # pyright: ignore[reportReturnType]  # by its workload
