"""What is suddenly worse than an epoch before. No torch in here."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from hookloop.errors import RegistrationError

Kind = Literal["loss_spike", "accuracy_drop", "large_gradients"]

LOSSES = ("loss", "train_loss", "val_loss")
ACCURACIES = ("accuracy", "train_accuracy", "val_accuracy")
NORMS = ("grad_norm", "grad/norm")


@dataclass(frozen=True, slots=True)
class AlertLimits:
    """How much worse is too much.

    Args:
        loss_spike: Share of the loss before by which a loss may rise.
        accuracy_drop: How much an accuracy may fall; 0.05 is five points.
        gradient_norm: What the norm of the gradients may be.
    """

    loss_spike: float = 0.2
    accuracy_drop: float = 0.05
    gradient_norm: float = 10.0

    def __post_init__(self) -> None:
        for name in ("loss_spike", "accuracy_drop", "gradient_norm"):
            if not getattr(self, name) > 0:
                raise RegistrationError(f"{name} must be more than 0, got {getattr(self, name)!r}.")


@dataclass(frozen=True, slots=True)
class Alert:
    """One metric that is worse than it should be."""

    kind: Kind
    metric: str
    value: float
    limit: float
    """What it would have to be beyond to be an alert."""

    def __str__(self) -> str:
        words = {"loss_spike": "rose to", "accuracy_drop": "fell to", "large_gradients": "is"}[self.kind]
        side = "below" if self.kind == "accuracy_drop" else "above"
        return f"{self.metric} {words} {self.value:.4g}, {side} {self.limit:.4g}"


def find_alerts(before: Mapping[str, Any], now: Mapping[str, Any], limits: AlertLimits | None = None) -> list[Alert]:
    """Return what is wrong with the metrics of an epoch, given those of the one before it."""
    limits = limits if limits is not None else AlertLimits()
    found: list[Alert] = []
    for name, old, new in _pairs(LOSSES, before, now):
        most = old + limits.loss_spike * abs(old)
        if new > most:
            found.append(Alert("loss_spike", name, new, most))
    for name, old, new in _pairs(ACCURACIES, before, now):
        least = old - limits.accuracy_drop
        if new < least:
            found.append(Alert("accuracy_drop", name, new, least))
    for name in NORMS:
        if name in now and now[name] > limits.gradient_norm:
            found.append(Alert("large_gradients", name, now[name], limits.gradient_norm))
    return found


def _pairs(
    names: tuple[str, ...], before: Mapping[str, Any], now: Mapping[str, Any]
) -> Iterator[tuple[str, float, float]]:
    for name in names:
        if name in before and name in now and math.isfinite(before[name]):
            yield name, before[name], now[name]
