"""Kickstarting: a trained policy teaches another in its first epochs."""

from __future__ import annotations

import torch
from torch import Tensor

from hookloop.core import Schedule
from hookloop.core.state import TrainerState
from hookloop.errors import ConfigError
from hookloop.rl.experience import ExperienceSpec
from hookloop.rl.losses.base import Loss, RolloutStep, SharedLossData
from hookloop.rl.policies import Policy
from hookloop.rl.specs import ArraySpec

PARAMETERS, VALUES = "teacher_parameters", "teacher_values"


class Kickstart(Loss):
    """Pull the policy towards a teacher's action distribution, and the values towards the teacher's.

    The teacher is asked during collection and its answers are stored, so training never runs it. Give the loss a
    ``train_schedule`` such as ``"until 20 epochs"``, and a value schedule on ``coefficient`` to fade it out.

    Args:
        teacher: A policy with the same observations and actions; it is not trained.
        coefficient: The weight of the distance between the action distributions.
        value_coefficient: The weight of the distance between the values.
    """

    def __init__(
        self,
        teacher: Policy,
        *,
        coefficient: float = 1.0,
        value_coefficient: float = 0.0,
        name: str | None = None,
        rollout_schedule: Schedule | str | None = None,
        train_schedule: Schedule | str | None = None,
    ) -> None:
        # What is not collected cannot be trained on: without a schedule of its own, collection follows training.
        super().__init__(name=name, rollout_schedule=rollout_schedule or train_schedule, train_schedule=train_schedule)
        if teacher.is_recurrent:
            raise ConfigError("Kickstart needs a teacher without memory; a recurrent one would have to be unrolled.")
        self.teacher = teacher.eval().requires_grad_(False)
        self.coefficient = coefficient
        self.value_coefficient = value_coefficient

    def get_experience_spec(self) -> ExperienceSpec:
        """Ask for the teacher's answers to be stored."""
        return {
            PARAMETERS: ArraySpec((self.teacher.head.num_parameters,), "float32"),
            VALUES: ArraySpec((), "float32"),
        }

    def run_rollout(self, step: RolloutStep, trainer_state: TrainerState) -> None:
        """Ask the teacher."""
        with torch.inference_mode():
            parameters, values = self.teacher.forward(step.obs)
        step.store(PARAMETERS, parameters)
        step.store(VALUES, values)

    def run_train(self, shared_loss_data: SharedLossData, trainer_state: TrainerState) -> Tensor:
        """Return the distance to the teacher."""
        rows, now = shared_loss_data.minibatch, shared_loss_data.evaluated
        distance = self.teacher.head.divergence(rows.columns[PARAMETERS], now.parameters, rows.masks).mean()
        values = (now.values - rows.columns[VALUES].reshape(-1)).square().mean()
        self.statistics.add(("divergence", "value_distance"), torch.stack((distance.detach(), values.detach())))
        return distance * self.coefficient + values * self.value_coefficient
