"""The settings of a run, kept and compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookloop.errors import ConfigError
from hookloop.supervised import TrainingConfig


def test_settings_can_be_kept_and_compared(tmp_path: Path) -> None:
    config = TrainingConfig(learning_rate=1e-3, betas=(0.8, 0.9), checkpoint_dir="here")

    config.save(tmp_path / "training.json")
    loaded = TrainingConfig.load(tmp_path / "training.json")

    assert loaded == config
    assert TrainingConfig(epochs=3).diff(TrainingConfig(epochs=4, seed=1)) == {"epochs": (3, 4), "seed": (42, 1)}


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        TrainingConfig().epochs = 3  # type: ignore[misc]


def test_settings_are_written_as_json_alone(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"must end in \.json"):
        TrainingConfig().save(tmp_path / "training.yaml")


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, match="warmup_steps=20 is more than max_steps=10"):
        TrainingConfig(warmup_steps=20, max_steps=10)
