"""Supervised learning on what is on the user's machine already: text and images."""

from __future__ import annotations

from hookloop.config.settings import CheckpointConfig
from hookloop.supervised.config import CharlmConfig, CNNConfig, DigitsConfig, GPTConfig, SupervisedConfig
from hookloop.supervised.training_config import TrainingSettings


def charlm() -> SupervisedConfig:
    """Learn to write Python from the standard library, symbol by symbol (small GPT)."""
    return SupervisedConfig(
        model=GPTConfig(layers=4, heads=4, width=128),
        data=CharlmConfig(block_size=64, batches_per_epoch=100, val_windows=512),
        training=TrainingSettings(
            epochs=20, batch_size=16, learning_rate=2e-3, betas=(0.9, 0.99), weight_decay=0.1, max_grad_norm=1.0,
            lr_schedule="cosine", warmup_steps=100, min_lr_ratio=0.1, val_batch_size=64, loss="token_classification",
        ),
    )  # fmt: skip


def digits() -> SupervisedConfig:
    """Recognise handwritten digits in seconds (small CNN; extra examples)."""
    return SupervisedConfig(
        model=CNNConfig(),
        data=DigitsConfig(),
        checkpoints=CheckpointConfig(metric="val_accuracy"),
        training=TrainingSettings(
            epochs=20, batch_size=64, learning_rate=2e-3, weight_decay=0.01, lr_schedule="cosine", warmup_steps=20,
            val_batch_size=512, loss="classification", monitor="val_accuracy", mode="max",
        ),
    )  # fmt: skip
