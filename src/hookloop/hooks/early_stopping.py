"""A run that ends when it no longer gets better."""

from __future__ import annotations

import math
from typing import Literal

from hookloop.core import HookContext
from hookloop.errors import RegistrationError, UnknownNameError

Mode = Literal["min", "max"]


class EarlyStoppingHook:
    """Ask the run to stop once a metric has not improved for ``patience`` epochs that measured it.

    Args:
        patience: Epochs without an improvement; so many in a row end the run.
        min_delta: How much better a value must be to count as an improvement.
        mode: Whether less is better, or more.
        metric: The name of the metric, as the workload reports it at the end of an epoch.
    """

    saved = ("best", "best_epoch", "waited")

    def __init__(self, patience: int = 3, min_delta: float = 0.0, mode: Mode = "min", metric: str = "val_loss") -> None:
        if isinstance(patience, bool) or not isinstance(patience, int) or patience < 1:
            raise RegistrationError(f"patience must be at least 1 epoch, got {patience!r}.")
        if not min_delta >= 0:
            raise RegistrationError(f"min_delta must be 0 or more, got {min_delta!r}.")
        require_mode(mode)
        self.patience = patience
        self.min_delta = min_delta
        self.mode: Mode = mode
        self.metric = metric
        self.best: float | None = None
        self.best_epoch = 0
        self.waited = 0

    def on_epoch_end(self, ctx: HookContext) -> None:
        """Look at the metric; epochs in which it was not measured do not count."""
        if self.metric not in ctx.metrics:
            if self.best is None and ctx.state.epoch >= self.patience:
                raise UnknownNameError("metric", self.metric, ctx.metrics, where="to stop early by")
            return
        value = ctx.metrics[self.metric]
        if is_better(value, self.best, self.mode, self.min_delta):
            self.best, self.best_epoch, self.waited = value, ctx.state.epoch, 0
            return
        self.waited += 1
        if self.waited >= self.patience:
            shown = (
                "was never finite" if self.best is None else f"was best in epoch {self.best_epoch} ({self.best:.4g})"
            )
            ctx.request_stop(f"{self.metric} {shown} and has not improved for {self.waited} epochs")


def is_better(value: float, best: float | None, mode: Mode, min_delta: float = 0.0) -> bool:
    """Tell whether a value is an improvement; NaN and infinity never are."""
    if not math.isfinite(value):
        return False
    if best is None:
        return True
    return value < best - min_delta if mode == "min" else value > best + min_delta


def require_mode(mode: object) -> None:
    """Refuse what is no mode."""
    if mode not in ("min", "max"):
        raise RegistrationError(f"mode must be 'min' (less is better) or 'max', got {mode!r}.")
