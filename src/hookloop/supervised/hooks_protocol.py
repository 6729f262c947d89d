"""One object with some of six methods: the hooks of a supervised run in their plainest form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from hookloop.core import TrainerHook

Live = Any


class TrainingHooks(Protocol):
    """What an object may have that is given as ``hooks``: any of these, with any of these parameters.

    A hook of any other form is as welcome; this is the form in which all six methods are written out.
    """

    def on_training_start(self) -> None:
        """Act once, before the first epoch."""
        ...

    def on_epoch_start(self, epoch: int) -> None:
        """Act before an epoch; ``epoch`` are those completed."""
        ...

    def on_batch_end(self, batch_idx: int, loss: Live) -> None:
        """Act after a batch; the loss is a tensor, which is read when it is used."""
        ...

    def on_validation_end(self, metrics: Mapping[str, float]) -> None:
        """Act after a validation; the names of its metrics begin with ``val_``."""
        ...

    def on_epoch_end(self, epoch: int, metrics: Mapping[str, float]) -> None:
        """Act after an epoch, with the metrics of training and validation."""
        ...

    def on_training_end(self) -> None:
        """Act exactly once at the end, whatever the outcome."""
        ...


class DefaultHooks(TrainerHook):
    """Hooks that do nothing; override what you want, the rest costs nothing."""
