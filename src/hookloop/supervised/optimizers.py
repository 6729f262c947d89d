"""Torch optimizers by name, and their state in a form that a checkpoint can hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import nn

from hookloop.errors import ConfigError, HookStateError
from hookloop.supervised.adam import FusedAdam
from hookloop.supervised.training_config import TrainingSettings

Plain = Any
MakeOptimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]


def make_optimizer(
    model: nn.Module, config: TrainingSettings, given: torch.optim.Optimizer | MakeOptimizer | None = None
) -> torch.optim.Optimizer:
    """Return the optimizer that was given, or the one that the settings ask for."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if isinstance(given, torch.optim.Optimizer):
        return given
    if not parameters:
        raise ConfigError(f"{type(model).__name__} has no parameters that are trained; set requires_grad on some.")
    if given is not None:
        return given(parameters)
    lr, decay = config.learning_rate, config.weight_decay
    if config.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=lr, momentum=config.momentum, weight_decay=decay)
    settings = {"lr": lr, "betas": config.betas, "eps": config.eps, "weight_decay": decay}
    # One kernel for all parameters where there is one: several times quicker than the loop over parameters.
    is_fusible = all(each.is_floating_point() and each.device.type in ("cpu", "cuda") for each in parameters)
    if is_fusible and len({(each.device, each.dtype) for each in parameters}) == 1:
        return FusedAdam(parameters, decoupled_weight_decay=config.optimizer == "adamw", **settings)
    kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
    return kind(parameters, fused=is_fusible or None, **settings)


def save_optimizer(optimizer: torch.optim.Optimizer) -> dict[str, Plain]:
    """Return the optimizer's memory, which is the live one, with texts for keys."""
    saved = optimizer.state_dict()
    groups = [{name: _plain(value) for name, value in group.items()} for group in saved["param_groups"]]
    return {"memory": {str(index): memory for index, memory in saved["state"].items()}, "groups": groups}


def load_optimizer(optimizer: torch.optim.Optimizer, saved: Mapping[str, Plain]) -> None:
    """Restore the optimizer's memory and its settings."""
    groups = [dict(group) for group in saved["groups"]]
    if [len(group["params"]) for group in groups] != [len(group["params"]) for group in optimizer.param_groups]:
        raise HookStateError("The saved optimizer belongs to another model: the groups of parameters differ.")
    for group, now in zip(groups, optimizer.param_groups, strict=True):
        for name, value in now.items():
            if isinstance(value, tuple):
                group[name] = tuple(group[name])
    memory = {int(index): dict(each) for index, each in saved["memory"].items()}
    optimizer.load_state_dict({"state": memory, "param_groups": groups})


def _plain(value: Plain) -> Plain:
    return list(value) if isinstance(value, tuple) else value
