"""Supervised learning: a trainer for any model and any data, with everything else delegated.

::

    from hookloop.supervised import Trainer, TrainingConfig

    trainer = Trainer(model, training_config=TrainingConfig(learning_rate=1e-3, epochs=5))
    results = trainer.train(train_data=(inputs, targets))

The names are imported when they are first used, so that a configuration can be read without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

_HOMES = {
    "DataLoaderFactory": "hookloop.supervised.data",
    "DefaultHooks": "hookloop.supervised.hooks_protocol",
    "GradientAccumulator": "hookloop.supervised.accumulator",
    "GradientHealth": "hookloop.supervised.gradient_monitor",
    "GradientMonitor": "hookloop.supervised.gradient_monitor",
    "LossStrategy": "hookloop.supervised.losses",
    "MetricsTracker": "hookloop.supervised.metrics",
    "ModelOutput": "hookloop.supervised.outputs",
    "SupervisedConfig": "hookloop.supervised.config",
    "TaskSpec": "hookloop.supervised.data",
    "TrainResult": "hookloop.supervised.result",
    "Trainer": "hookloop.supervised.trainer",
    "TrainingConfig": "hookloop.supervised.training_config",
    "TrainingHooks": "hookloop.supervised.hooks_protocol",
    "UniversalDataModule": "hookloop.supervised.data",
    "ValidationLoop": "hookloop.supervised.validation",
    "build_trainer": "hookloop.supervised.build",
    "make_loss": "hookloop.supervised.losses",
    "register_collator": "hookloop.supervised.data",
    "register_loss": "hookloop.supervised.losses",
    "set_seed": "hookloop.supervised.seeds",
}

__all__ = [
    "DataLoaderFactory",
    "DefaultHooks",
    "GradientAccumulator",
    "GradientHealth",
    "GradientMonitor",
    "LossStrategy",
    "MetricsTracker",
    "ModelOutput",
    "SupervisedConfig",
    "TaskSpec",
    "TrainResult",
    "Trainer",
    "TrainingConfig",
    "TrainingHooks",
    "UniversalDataModule",
    "ValidationLoop",
    "build_trainer",
    "make_loss",
    "register_collator",
    "register_loss",
    "set_seed",
]

if TYPE_CHECKING:
    from hookloop.supervised.accumulator import GradientAccumulator
    from hookloop.supervised.build import build_trainer
    from hookloop.supervised.config import SupervisedConfig
    from hookloop.supervised.data import DataLoaderFactory, TaskSpec, UniversalDataModule, register_collator
    from hookloop.supervised.gradient_monitor import GradientHealth, GradientMonitor
    from hookloop.supervised.hooks_protocol import DefaultHooks, TrainingHooks
    from hookloop.supervised.losses import LossStrategy, make_loss, register_loss
    from hookloop.supervised.metrics import MetricsTracker
    from hookloop.supervised.outputs import ModelOutput
    from hookloop.supervised.result import TrainResult
    from hookloop.supervised.seeds import set_seed
    from hookloop.supervised.trainer import Trainer
    from hookloop.supervised.training_config import TrainingConfig
    from hookloop.supervised.validation import ValidationLoop


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'hookloop.supervised' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
