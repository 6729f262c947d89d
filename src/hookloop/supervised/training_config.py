"""How a supervised run trains, as typed, closed and frozen settings. No torch in here."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from hookloop.config.settings import Settings
from hookloop.errors import ConfigError, did_you_mean

Plain = Any
Precision = Literal["fp32", "bf16", "fp16"]
LearningRateSchedule = Literal["constant", "linear", "cosine", "wsd"]


class TrainingSettings(Settings):
    """Everything about training but the model and the data."""

    epochs: int = Field(default=10, ge=1, description="Passes over the data")
    max_steps: int | None = Field(default=None, ge=1, description="Optimizer steps after which training is done")
    batch_size: int = Field(default=32, ge=1, description="Samples in a batch")
    val_batch_size: int | None = Field(default=None, ge=1, description="Samples in a batch of validation")
    gradient_accumulation_steps: int = Field(default=1, ge=1, description="Batches per optimizer step")

    optimizer: Literal["adamw", "adam", "sgd"] = Field(default="adamw", description="How to step")
    learning_rate: float = Field(default=5e-5, gt=0, description="The highest step size")
    betas: tuple[float, float] = Field(default=(0.9, 0.999), description="Decay of Adam's two moments")
    eps: float = Field(default=1e-8, gt=0, description="Adam's epsilon")
    momentum: float = Field(default=0.0, ge=0, lt=1, description="Of SGD")
    weight_decay: float = Field(default=0.01, ge=0, description="Pull of the weights towards 0")
    max_grad_norm: float | None = Field(default=1.0, gt=0, description="Gradients are scaled down to this norm")

    lr_schedule: LearningRateSchedule = Field(default="constant", description="How the learning rate changes")
    warmup_steps: int = Field(default=0, ge=0, description="Optimizer steps in which the learning rate rises")
    min_lr_ratio: float = Field(
        default=0.0, ge=0, le=1, description="Share of the learning rate that is left at the end"
    )
    decay_ratio: float = Field(default=0.2, gt=0, le=1, description="Share of all steps in which 'wsd' decays")

    loss: str = Field(default="auto", description="The name of a loss strategy; 'auto' finds out from the first batch")
    label_smoothing: float = Field(default=0.0, ge=0, lt=1, description="Of the losses that classify")
    precision: Precision = Field(default="fp32", description="bf16 and fp16 are mixed precision")
    compile: bool = Field(default=False, description="Compile the model with torch.compile")
    device: str | None = Field(default=None, description="Where to train; by default where the model is")

    seed: int = Field(default=42, ge=0, description="The root of all randomness")
    deterministic: bool = Field(default=False, description="Refuse operations that differ from run to run")
    shuffle: bool = Field(default=True, description="Another order of the data in each epoch")
    drop_last: bool = Field(default=False, description="Leave out a last batch that is not full")
    num_workers: int = Field(default=0, ge=0, description="Processes that load data; in-memory data needs none")
    collator: str | None = Field(default=None, description="How samples become a batch, by name")

    validate_every_epochs: int = Field(default=1, ge=1, description="Epochs between two validations")
    train_metrics: bool = Field(default=False, description="Measure accuracy on training batches, too")
    halt_after_bad_gradients: int = Field(
        default=3, ge=0, description="So many NaN or infinite gradients in a row end the run; 0 looks at none"
    )

    checkpoint_dir: str | None = Field(default=None, description="Where to save; nothing is saved without one")
    save_every_epochs: int = Field(default=1, ge=1, description="Epochs between two checkpoints")
    save_every_steps: int | None = Field(default=None, ge=1, description="Optimizer steps between two, within epochs")
    keep_last: int = Field(default=10, ge=1, description="The newest checkpoints to keep")
    keep_best: int = Field(default=3, ge=0, description="The best checkpoints to keep")
    monitor: str = Field(default="val_loss", description="The metric that tells which epoch is the best")
    mode: Literal["min", "max"] = Field(default="min", description="Whether less of it is better, or more")

    @model_validator(mode="after")
    def _fits_together(self) -> TrainingSettings:
        if self.max_steps is not None and self.warmup_steps > self.max_steps:
            raise ValueError(
                f"warmup_steps={self.warmup_steps} is more than max_steps={self.max_steps}: the learning rate would "
                "never reach its value; use fewer warmup_steps, or more steps."
            )
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas={self.betas} must lie in [0, 1)")
        return self


class TrainingConfig(TrainingSettings):
    """The settings of a run, for programs: every mistake in them is reported at once, and they can be kept."""

    def __init__(self, **settings: Plain) -> None:
        try:
            super().__init__(**settings)
        except ValidationError as error:
            raise ConfigError(_in_words(error, type(self).__name__, type(self).model_fields)) from error

    def save(self, path: str | Path) -> None:
        """Write the settings to a JSON file, whole or not at all."""
        from hookloop.config.files import write_config  # here and not above: with YAML, which a recipe needs not

        write_config(path, self.model_dump(mode="json"))

    @classmethod
    def load(cls, path: str | Path) -> TrainingConfig:
        """Read settings from a ``.json``, ``.yaml`` or ``.toml`` file."""
        from hookloop.config.files import read_config

        return cls(**read_config(path))

    def diff(self, other: TrainingSettings) -> dict[str, tuple[Plain, Plain]]:
        """Return the settings that differ: this one's value and the other's."""
        mine, others = self.model_dump(), other.model_dump()
        return {name: (value, others[name]) for name, value in mine.items() if value != others[name]}


def _in_words(error: ValidationError, what: str, known: Any) -> str:
    mistakes: list[str] = []
    for mistake in error.errors():
        name = ".".join(map(str, mistake["loc"]))
        if mistake["type"] == "extra_forbidden":
            mistakes.append(f"{name} is not a setting.{did_you_mean(name, known)}")
        elif name:
            mistakes.append(f"{name} is {mistake['input']!r}: {mistake['msg'].lower()}.")
        else:
            mistakes.append(f"{mistake['msg'].removeprefix('Value error, ')}.")
    return f"{what} is not valid:\n" + "\n".join(f"  {each}" for each in mistakes)
