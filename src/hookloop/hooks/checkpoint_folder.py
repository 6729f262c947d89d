"""Checkpoints in a folder, from settings alone: for configurations, and for trainers that are told where to save."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from hookloop.checkpoints import CheckpointManager, Retention
from hookloop.core import CompositeHook, Every
from hookloop.errors import RegistrationError
from hookloop.hooks.checkpoint import BatchSaveHook, SaveHook


class CheckpointFolderHook(CompositeHook):
    """Save the run in a folder, every so many epochs and at the end; within epochs, too, if asked to.

    Args:
        folder: Where the checkpoints are.
        every_epochs: Epochs between two checkpoints.
        every_steps: Optimizer steps between two, within epochs; None saves at the end of epochs alone.
        keep_last: The newest to keep.
        keep_best: The best to keep.
        metric: What "best" means.
        mode: Whether more is better, or less.
        resume: What to go on from: ``latest``, ``best``, a path; None begins anew.
    """

    def __init__(
        self,
        folder: str | Path,
        every_epochs: int = 1,
        every_steps: int | None = None,
        keep_last: int = 5,
        keep_best: int = 3,
        metric: str = "val_loss",
        mode: Literal["min", "max"] = "min",
        resume: str | None = None,
    ) -> None:
        for name, value in (("every_epochs", every_epochs), ("every_steps", every_steps)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise RegistrationError(f"{name} must be a whole number, at least 1, got {value!r}.")
        retention = Retention(keep_last=keep_last, keep_best=keep_best, metric=metric, mode=mode)
        self.checkpoint_manager = CheckpointManager(folder, retention=retention)
        self._save = (
            FolderSaveHook(self.checkpoint_manager, every_epochs)
            if every_steps is None
            else StepSaveHook(self.checkpoint_manager, every_epochs, every_steps)
        )
        self.go_on_from(resume)
        super().__init__([self._save], name="checkpoint")

    def go_on_from(self, selector: str | None) -> None:
        """Choose what the next start of training goes on from; None begins anew."""
        self._save.go_on_from(selector)


class FolderSaveHook(SaveHook):
    """Saves at the end of epochs."""

    def __init__(self, manager: CheckpointManager, every_epochs: int) -> None:
        super().__init__(manager, Every(every_epochs), resume=False, strict=False, max_failed_saves=3)

    def go_on_from(self, selector: str | None) -> None:
        """Choose what the next start of training goes on from; None begins anew."""
        self._resume = selector


class StepSaveHook(FolderSaveHook, BatchSaveHook):
    """Saves within epochs, too."""

    def __init__(self, manager: CheckpointManager, every_epochs: int, every_steps: int) -> None:
        super().__init__(manager, every_epochs)
        self.schedule["minibatch_end"] = Every(every_steps, "optimizer_steps")
