"""Hyperparameters that follow a schedule, set before each epoch on every rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from hookloop.core import HookContext
from hookloop.errors import ConfigError, did_you_mean
from hookloop.rl.figures import numbers_of
from hookloop.rl.values import ValueSchedule


class Scheduled(Protocol):
    """A trainer, as far as scheduled values look: its optimizer, its losses, its learner, and how far it goes."""

    @property
    def optimizer(self) -> Any:
        """What steps."""
        ...

    @property
    def losses(self) -> Sequence[Any]:
        """What is minimised, by name."""
        ...

    @property
    def workload(self) -> Any:
        """Has ``total_env_steps`` and a ``learner``."""
        ...


class ValueHook:
    """Writes scheduled values: ``optimizer.learning_rate``, ``losses.ppo.clip`` and the like.

    A value depends on the completed share of the run's environment steps alone, so it needs no memory to resume.
    """

    def __init__(self, trainer: Scheduled, values: Mapping[str, ValueSchedule]) -> None:
        self._trainer = trainer
        self._values = dict(values)
        for path in self._values:
            self._target(path)

    def on_epoch_start(self, ctx: HookContext) -> None:
        """Set all values for the coming epoch."""
        progress = ctx.state.clocks.env_steps / max(self._trainer.workload.total_env_steps, 1)
        for path, schedule in self._values.items():
            owner, name = self._target(path)
            setattr(owner, name, schedule.at(progress))

    def _target(self, path: str) -> tuple[object, str]:
        losses = {f"losses.{loss.name}": loss for loss in self._trainer.losses}
        owners: dict[str, object] = {
            "optimizer": self._trainer.optimizer,
            "learner": self._trainer.workload.learner,
            **losses,
        }
        prefix, _, name = path.rpartition(".")
        if prefix not in owners:
            raise ConfigError(f"There is nothing at {path!r} to schedule.{did_you_mean(prefix, owners)}")
        owner = owners[prefix]
        numbers = numbers_of(owner)
        if name not in numbers:
            raise ConfigError(f"{prefix} has no number {name!r} to schedule.{did_you_mean(name, numbers)}")
        return owner, name
