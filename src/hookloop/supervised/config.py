"""What a supervised run is made of, as typed, closed and frozen settings. No torch in here."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from hookloop.config.settings import CheckpointConfig, RunSettings, Settings
from hookloop.supervised.training_config import TrainingSettings


class GPTConfig(Settings):
    """A transformer that foretells the next symbol."""

    kind: Literal["gpt"] = "gpt"
    layers: int = Field(default=4, ge=1, description="Blocks of attention and feed-forward")
    heads: int = Field(default=4, ge=1, description="Heads of attention; they divide the width")
    width: int = Field(default=128, ge=1, description="Numbers a position is represented by")
    dropout: float = Field(default=0.0, ge=0, lt=1, description="Share of activations left out in training")


class CNNConfig(Settings):
    """Two convolutions and a layer on top, for small images."""

    kind: Literal["cnn"] = "cnn"
    channels: tuple[int, int] = Field(default=(32, 64), description="Of the two convolutions")
    hidden: int = Field(default=128, ge=1, description="Width of the layer on top")
    dropout: float = Field(default=0.2, ge=0, lt=1, description="Share of activations left out in training")


class CharlmConfig(Settings):
    """The source text of the Python standard library on this machine, symbol by symbol."""

    kind: Literal["charlm"] = "charlm"
    block_size: int = Field(default=64, ge=2, description="Symbols a sample is made of")
    batches_per_epoch: int = Field(default=100, ge=1, description="Batches of random windows that make an epoch")
    val_windows: int = Field(default=512, ge=1, description="Windows of the modules that are held out")


class DigitsConfig(Settings):
    """Handwritten digits of 8 by 8 pixels, from scikit-learn (extra ``examples``)."""

    kind: Literal["digits"] = "digits"
    val_share: float = Field(default=0.2, gt=0, lt=1, description="Share that is held out")


ModelConfig = Annotated[GPTConfig | CNNConfig, Field(discriminator="kind")]
DataConfig = Annotated[CharlmConfig | DigitsConfig, Field(discriminator="kind")]


class SupervisedConfig(RunSettings):
    """A whole run: what a recipe returns and ``hookloop train`` carries out."""

    workload: ClassVar[str] = "supervised"

    model: ModelConfig
    data: DataConfig
    training: TrainingSettings = TrainingSettings()
    checkpoints: CheckpointConfig = CheckpointConfig(metric="val_loss", mode="min")
    patience: int | None = Field(default=None, ge=1, description="Stop after so many epochs that are not better")
