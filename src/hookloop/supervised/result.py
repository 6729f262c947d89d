"""What is left of a supervised run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hookloop.core import LoopResult
from hookloop.errors import UnknownNameError
from hookloop.supervised.metrics import Row

RESULT_VERSION = 1

_NAMES = (
    "outcome", "epochs", "optimizer_steps", "seconds", "training_time", "final_loss", "best_epoch", "best_metric",
    "checkpoint_path", "metrics_summary", "loss_history", "val_loss_history",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TrainResult:
    """How a supervised run ended; ``version`` changes when a field changes its meaning.

    Its fields can be read by name too: ``result["final_loss"]``.
    """

    version: int
    outcome: str
    epochs: int
    optimizer_steps: int
    seconds: float
    final_loss: float | None
    """Of training, in the last epoch; None if no epoch was completed or it was not finite."""
    best_epoch: int | None
    """By the metric that is monitored, or by the loss of training where that is not measured."""
    best_metric: float | None
    checkpoint_path: str | None
    """The last checkpoint; None without a folder for them."""
    rows: tuple[Row, ...]
    """The metrics of each epoch."""
    loop: LoopResult

    @property
    def training_time(self) -> float:
        """Seconds trained, over all attempts."""
        return self.seconds

    @property
    def metrics_summary(self) -> list[Row]:
        """The metrics of each epoch, as rows of a table."""
        return [dict(row) for row in self.rows]

    @property
    def loss_history(self) -> list[float | None]:
        """The loss of training in each epoch."""
        return [row.get("loss") for row in self.rows]

    @property
    def val_loss_history(self) -> list[float | None]:
        """The loss of validation in each epoch; None where nothing was validated."""
        return [row.get("val_loss") for row in self.rows]

    def __getitem__(self, name: str) -> Any:
        if name not in _NAMES:
            raise UnknownNameError("result", name, _NAMES)
        return getattr(self, name)

    def __contains__(self, name: object) -> bool:
        return name in _NAMES

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def keys(self) -> tuple[str, ...]:
        """Return the names that can be read with brackets."""
        return _NAMES
