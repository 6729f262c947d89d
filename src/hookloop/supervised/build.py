"""From settings to a trainer."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from hookloop.core import HookManager, derive_seed
from hookloop.core.signals import SECOND
from hookloop.errors import ConfigError
from hookloop.supervised.config import CharlmConfig, CNNConfig, SupervisedConfig
from hookloop.supervised.datasets import DataForm, Split, charlm, digits
from hookloop.supervised.datasets.charlm import charlm_form
from hookloop.supervised.datasets.digits import FORM as DIGITS_FORM
from hookloop.supervised.models import CNN, GPT
from hookloop.supervised.trainer import Trainer


def build_trainer(
    config: SupervisedConfig,
    *,
    hooks: HookManager | Sequence[object] = (),
    seed: int = 0,
    second_signal: SECOND = "raise",
) -> Trainer:
    """Build everything a run needs, its data included; ``run()`` then trains.

    Args:
        config: The settings.
        hooks: What else should happen.
        seed: The root of all randomness; it takes the place of ``training.seed``.
        second_signal: What a second Ctrl-C does.
    """
    settings = config.training.model_copy(update={"seed": seed})
    data = build_data(config)
    model = build_model(config, data, seed=derive_seed(seed, "model"))
    trainer = Trainer(model, config.model, settings, hooks, second_signal=second_signal)
    trainer.prepare(data.train, data.val)
    return trainer


def build_data(config: SupervisedConfig) -> Split:
    """Find the data of a run, training and validation."""
    wanted = config.data
    if isinstance(wanted, CharlmConfig):
        return charlm(
            block_size=wanted.block_size,
            batch_size=config.training.batch_size,
            batches_per_epoch=wanted.batches_per_epoch,
            val_windows=wanted.val_windows,
        )
    return digits(val_share=wanted.val_share)


def data_form(config: SupervisedConfig) -> DataForm:
    """Return what a model must know of the data of a run; the data themselves need not be there."""
    return charlm_form(config.data.block_size) if isinstance(config.data, CharlmConfig) else DIGITS_FORM


def build_model(config: SupervisedConfig, data: DataForm, *, seed: int = 0) -> nn.Module:
    """Build a model that fits the data; its first weights follow from the seed, and from nothing else."""
    wanted = config.model
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if isinstance(wanted, CNNConfig):
            if data.image_shape is None:
                raise ConfigError(f"A cnn is for images, which the data {config.data.kind!r} are not; take model gpt.")
            return CNN(data.image_shape, data.classes, wanted.channels, wanted.hidden, wanted.dropout)
        if data.block_size is None:
            raise ConfigError(f"A gpt is for sequences, which the data {config.data.kind!r} are not; take model cnn.")
        return GPT(
            data.classes, data.block_size, layers=wanted.layers, heads=wanted.heads, width=wanted.width,
            dropout=wanted.dropout,
        )  # fmt: skip
