"""The weights of the best epoch, in the model when training has ended."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from hookloop.core import HookContext
from hookloop.hooks.early_stopping import Mode, is_better, require_mode

Live = Any
Plain = Any


class BestWeightsHook:
    """Keep the weights of the epoch whose metric was best, and put them into the model at the end.

    It does so after the last checkpoint: that one stays what the run goes on from, and holds the best weights beside.

    Args:
        metric: The name of the metric, as the workload reports it at the end of an epoch.
        mode: Whether less is better, or more.
    """

    name = "best_weights"
    stage = "publish"
    on_error = "raise"

    def __init__(self, metric: str = "val_loss", mode: Mode = "min") -> None:
        require_mode(mode)
        self.metric = metric
        self.mode: Mode = mode
        self._best: float | None = None
        self._epoch = 0
        self._weights: dict[str, Live] = {}

    @property
    def epoch(self) -> int:
        """The best epoch so far; 0 before there is one."""
        return self._epoch

    def on_epoch_end(self, ctx: HookContext) -> None:
        """Copy the weights if they are the best so far."""
        value = ctx.metrics.get(self.metric)
        if value is not None and is_better(value, self._best, self.mode):
            self._best, self._epoch = value, ctx.state.epoch
            self._weights = copy.deepcopy(dict(ctx.model.state_dict()))

    def on_training_end(self, ctx: HookContext) -> None:
        """Put the best weights into the model."""
        if self._weights:
            ctx.model.load_state_dict(self._weights)

    def state_dict(self) -> dict[str, Plain]:
        """Return the best weights and what they have reached."""
        return {"best": self._best, "epoch": self._epoch, "weights": dict(self._weights)}

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on with what was the best."""
        self._best, self._epoch, self._weights = saved["best"], saved["epoch"], dict(saved["weights"])
