"""What a loss is: it says what to store, acts during collection, and turns minibatches into a number to minimise.

The life of a loss in one epoch::

    on_rollout_start → rollout* → on_rollout_end → (train → backward → step → on_mb_end)* → on_train_phase_end

``rollout`` and ``train`` are gates: they ask the loss's own schedules and then call ``run_rollout`` and ``run_train``,
which are the methods to write. A loss may also have any ``on_*`` method of a hook.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from hookloop.core import Cycle, Schedule, Window, as_schedule
from hookloop.core.due import Rule
from hookloop.core.state import TrainerState
from hookloop.errors import ScheduleError
from hookloop.rl.experience import Experience, ExperienceSpec
from hookloop.rl.sampling import Minibatch

if TYPE_CHECKING:
    from hookloop.rl.policies import Evaluated, Policy

Plain = Any


class SharedLossData:
    """What all losses of a minibatch share: its rows, and the policy's view of them, computed at most once."""

    __slots__ = ("_evaluated", "minibatch", "policy", "values")

    def __init__(self, policy: Policy, minibatch: Minibatch) -> None:
        self.policy = policy
        self.minibatch = minibatch
        self.values: dict[str, Tensor] = {}
        """Whatever one loss leaves for those after it."""
        self._evaluated: Evaluated | None = None

    @property
    def evaluated(self) -> Evaluated:
        """The policy's log-probabilities, entropy and values for these rows, with gradients."""
        if self._evaluated is None:
            rows = self.minibatch
            self._evaluated = self.policy.evaluate(
                rows.obs, rows.actions, mask=rows.masks, state=rows.state, starts=rows.starts
            )
        return self._evaluated


@dataclass(slots=True)
class RolloutStep:
    """One step of collection, for losses that store something of their own."""

    step: int
    obs: Tensor | dict[str, Tensor]
    masks: Tensor | None
    experience: Experience

    def store(self, name: str, value: Tensor) -> None:
        """Write a loss's column for this step."""
        self.experience.rows[name][self.step].copy_(value)


class Loss:
    """Something to minimise. Override ``run_train``; the rest is optional.

    Args:
        name: Under which its state, statistics and settings are found; the class's name in lower case by default.
        rollout_schedule: When it takes part in collection: spans of epochs or other clocks, such as
            ``"from 10 until 50 epochs"`` or ``"cycle 4 epochs on 1,2"``; always by default.
        train_schedule: When it takes part in training.
    """

    def __init__(
        self,
        *,
        name: str | None = None,
        rollout_schedule: Schedule | str | None = None,
        train_schedule: Schedule | str | None = None,
    ) -> None:
        self.name = name or type(self).__name__.lower()
        self.rollout_gate = Gate(rollout_schedule, f"{self.name}.rollout_schedule")
        self.train_gate = Gate(train_schedule, f"{self.name}.train_schedule")
        self.experience: Experience | None = None
        self.statistics = Statistics()

    def get_experience_spec(self) -> ExperienceSpec:
        """Return the columns this loss wants stored for each step, by name."""
        return {}

    def attach_replay_buffer(self, experience: Experience) -> None:
        """Take the buffer, once it exists and before the first step."""
        self.experience = experience

    def rollout(self, step: RolloutStep, trainer_state: TrainerState) -> None:
        """Take part in one step of collection, if the schedule says so; override only to bypass the schedule."""
        if self.rollout_gate.is_open(trainer_state):
            self.run_rollout(step, trainer_state)

    def run_rollout(self, step: RolloutStep, trainer_state: TrainerState) -> None:
        """Store what this loss needs of one step of collection."""

    def train(self, shared_loss_data: SharedLossData, trainer_state: TrainerState) -> Tensor:
        """Return the loss of a minibatch, or a zero without gradient while the schedule says no."""
        if self.train_gate.is_open(trainer_state):
            return self.run_train(shared_loss_data, trainer_state)
        return torch.zeros(())

    def is_training(self, trainer_state: TrainerState) -> bool:
        """Tell whether the schedule lets it train now, and nobody has overridden ``train`` to bypass it."""
        return type(self).train is Loss.train and self.train_gate.is_open(trainer_state)

    def run_train(self, shared_loss_data: SharedLossData, trainer_state: TrainerState) -> Tensor:
        """Return the loss of a minibatch; set ``trainer_state.stop_update_epoch`` to end the optimisation early."""
        raise NotImplementedError(f"{type(self).__name__} needs run_train(self, shared_loss_data, trainer_state).")

    def train_by_hand(self, policy: Policy, rows: Minibatch, trainer_state: TrainerState) -> Tensor | None:
        """Write the gradients of a minibatch's loss and return it, without autograd; None where that is not known.

        Asked when this is the only loss. ``run_train`` must then mean the same.
        """
        return None

    def end_pass(self, trainer_state: TrainerState) -> None:
        """Act after each pass over the experience; the place to look at statistics, which make the device wait."""

    def state_dict(self) -> dict[str, Plain]:
        """Return what must survive a resume; nothing by default."""
        return {}

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Restore what ``state_dict`` returned."""


class Gate:
    """A schedule of spans, asked once per epoch."""

    def __init__(self, schedule: Schedule | str | None, owner: str) -> None:
        self.schedule = None if schedule is None else as_schedule(schedule)
        self._rule = None if self.schedule is None else Rule(self.schedule, "epochs")
        if self._rule is not None and _has_instants(self._rule):
            raise ScheduleError(
                f"{owner} is '{schedule}', which names single ticks; a loss is on for spans: write "
                "'from 10 until 50 epochs', or 'cycle 4 epochs on 1' for every fourth epoch."
            )

    def is_open(self, trainer_state: TrainerState) -> bool:
        """Tell whether the loss takes part now."""
        if self._rule is None:
            return True
        now = vars(trainer_state.clocks)
        return self._rule.is_due(now, now)


def epoch_gate(
    begin_at_epoch: int = 0,
    end_at_epoch: float = float("inf"),
    cycle_length: int | None = None,
    active_in_cycle: tuple[int, ...] | list[int] | None = None,
) -> Schedule:
    """Return what BaseLoss's four parameters mean: a half-open window of epochs, and positions in a cycle."""
    window = Window(begin_at_epoch, end_at_epoch, "epochs")
    if cycle_length is None:
        return window
    return window & Cycle(cycle_length, active_in_cycle or (), "epochs")


class Statistics:
    """Means of named values over the minibatches of an epoch; sums stay tensors until the epoch is over."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, ...], Tensor] = {}
        self._counts: dict[tuple[str, ...], int] = {}

    def add(self, names: tuple[str, ...], values: Tensor) -> None:
        """Add one value per name."""
        if names in self._sums:
            self._sums[names] += values
            self._counts[names] += 1
        else:
            self._sums[names] = values.detach().clone()
            self._counts[names] = 1

    def means(self) -> dict[str, float]:
        """Return the means and begin anew; this is the one place where values leave the device."""
        found: dict[str, float] = {}
        for names, sums in self._sums.items():
            found.update(zip(names, (sums / self._counts[names]).tolist(), strict=True))
        self._sums.clear()
        self._counts.clear()
        return found


def _has_instants(rule: Rule) -> bool:
    return any(leaf.is_instant for way in rule.alternatives for track in way.tracks for leaf in track.leaves)
