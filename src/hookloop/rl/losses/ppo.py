"""Proximal policy optimisation.

The objective is one node of the autograd graph: its gradient is written by hand, so that an update costs a few large
operations instead of dozens of small ones. Axis: B rows of a minibatch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from hookloop.core import Schedule
from hookloop.core.state import TrainerState
from hookloop.errors import ConfigError
from hookloop.rl.losses.base import Loss, SharedLossData
from hookloop.rl.sampling import Minibatch

if TYPE_CHECKING:
    from hookloop.rl.policies import Policy

Settings = tuple[float, float | None, float, float]

STATISTICS = ("policy", "value", "entropy", "approx_kl", "clip_fraction")


class PPO(Loss):
    """The clipped surrogate objective with a value loss and an entropy bonus.

    Args:
        clip: How far the probability ratio may move from 1.
        value_clip: How far a value may move from the one at collection; None leaves it free.
        entropy_coefficient: The weight of the entropy bonus.
        value_coefficient: The weight of the value loss.
        normalise_advantages: Give each minibatch's advantages mean 0 and deviation 1.
        target_kl: End the optimisation of an epoch once a pass's mean approximate KL exceeds this; None never does.
    """

    def __init__(
        self,
        *,
        clip: float = 0.2,
        value_clip: float | None = None,
        entropy_coefficient: float = 0.0,
        value_coefficient: float = 0.5,
        normalise_advantages: bool = True,
        target_kl: float | None = None,
        name: str | None = None,
        rollout_schedule: Schedule | str | None = None,
        train_schedule: Schedule | str | None = None,
    ) -> None:
        super().__init__(name=name, rollout_schedule=rollout_schedule, train_schedule=train_schedule)
        if not clip > 0:
            raise ConfigError(f"PPO's clip must be above 0, got {clip}; 0.2 is usual.")
        self.clip = clip
        self.value_clip = value_clip
        self.entropy_coefficient = entropy_coefficient
        self.value_coefficient = value_coefficient
        self.normalise_advantages = normalise_advantages
        self.target_kl = target_kl
        self._kl = torch.zeros(2)  # the sum over a pass, and how many minibatches it had

    def run_train(self, shared_loss_data: SharedLossData, trainer_state: TrainerState) -> Tensor:
        """Return the objective of a minibatch."""
        rows, now = shared_loss_data.minibatch, shared_loss_data.evaluated
        loss, statistics = _Objective.apply(  # type: ignore[misc]  # torch types apply as returning Any
            now.log_probs, now.entropy, now.values, rows, self._advantages(rows), self._settings()
        )
        self._note(statistics)
        return loss

    def train_by_hand(self, policy: Policy, rows: Minibatch, trainer_state: TrainerState) -> Tensor | None:
        """Write the gradients of the objective without autograd, where the policy's network knows its own."""
        is_changed = type(self).run_train is not PPO.run_train  # by a subclass, whose objective is not known here
        if is_changed or not policy.can_backpropagate or not isinstance(rows.obs, Tensor):
            return None
        now = policy.evaluate_by_hand(rows.obs, rows.actions, mask=rows.masks)
        terms = objective(now.log_probs, now.entropy, now.values, rows, self._advantages(rows), self._settings())
        now.backpropagate(log_probs_grad=terms.log_probs, entropy_grad=terms.entropy, values_grad=terms.values)
        self._note(terms.statistics)
        return terms.loss

    def end_pass(self, trainer_state: TrainerState) -> None:
        """Stop the optimisation of this epoch if the policy has moved too far."""
        if self.target_kl is None:
            return
        total, count = self._kl.tolist()
        self._kl.zero_()
        if count and total / count > self.target_kl:
            trainer_state.stop_update_epoch = True

    def _advantages(self, rows: Minibatch) -> Tensor:
        is_normalised = self.normalise_advantages and rows.num_rows > 1
        return normalised(rows.advantages, rows.weights) if is_normalised else rows.advantages

    def _settings(self) -> Settings:
        return self.clip, self.value_clip, self.entropy_coefficient, self.value_coefficient

    def _note(self, statistics: Tensor) -> None:
        self.statistics.add(STATISTICS, statistics)
        if self.target_kl is not None:
            self._kl[0] += statistics[3]
            self._kl[1] += 1


def normalised(advantages_B: Tensor, weights_B: Tensor | None = None) -> Tensor:
    """Return advantages of mean 0 and deviation 1."""
    if weights_B is None:
        deviation, mean = torch.std_mean(advantages_B)
        return (advantages_B - mean) / (deviation + 1e-8)
    total = weights_B.sum()
    mean = (advantages_B * weights_B).sum() / total
    variance = ((advantages_B - mean).square_() * weights_B).sum() / total
    return (advantages_B - mean) / (variance.sqrt_() + 1e-8)


class Terms(NamedTuple):
    """The objective, its statistics, and its gradients by what it is made of."""

    loss: Tensor
    statistics: Tensor
    log_probs: Tensor
    entropy: Tensor
    values: Tensor


def objective(
    log_probs_B: Tensor, entropy_B: Tensor, values_B: Tensor, rows: Minibatch, advantages_B: Tensor, settings: Settings
) -> Terms:
    """Return policy + value_coefficient * value - entropy_coefficient * entropy, with its gradients."""
    clip, value_clip, entropy_coefficient, value_coefficient = settings
    weights_B = rows.weights
    share: Any = 1 / log_probs_B.numel() if weights_B is None else weights_B / weights_B.sum()

    log_ratio = log_probs_B - rows.log_probs
    ratio = log_ratio.exp()
    free = ratio * advantages_B
    held = ratio.clamp(1 - clip, 1 + clip).mul_(advantages_B)
    policy = _mean(torch.minimum(free, held), weights_B).neg_()
    # The gradient flows where the free term is the smaller one, which includes all rows that are not clipped.
    log_probs_grad = free.mul(free <= held).mul_(share).neg_()

    error, values_grad = _value_terms(values_B, rows.values, rows.returns, value_clip)
    value = _mean(error, weights_B).mul_(0.5)
    entropy = _mean(entropy_B, weights_B)
    entropy_grad = torch.full_like(entropy_B, -entropy_coefficient).mul_(share)
    loss = policy + value * value_coefficient - entropy * entropy_coefficient

    kl = _mean((ratio - 1).sub_(log_ratio), weights_B)
    clipped = _mean(((ratio - 1).abs_() > clip).to(ratio.dtype), weights_B)
    statistics = torch.stack((policy, value, entropy, kl, clipped))
    return Terms(loss, statistics, log_probs_grad, entropy_grad, values_grad.mul_(share).mul_(value_coefficient))


class _Objective(torch.autograd.Function):
    """The objective as one node of the autograd graph."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, Tensor]:
        terms = objective(*inputs)
        ctx.mark_non_differentiable(terms.statistics)
        ctx.save_for_backward(terms.log_probs, terms.entropy, terms.values)
        return terms.loss, terms.statistics

    @staticmethod
    def backward(ctx: Any, grad_loss: Tensor, _grad_statistics: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]  # torch types it with *args
        log_probs, entropy, values = ctx.saved_tensors
        return grad_loss * log_probs, grad_loss * entropy, grad_loss * values, None, None, None


def _value_terms(
    values_B: Tensor, old_values_B: Tensor, returns_B: Tensor, value_clip: float | None
) -> tuple[Tensor, Tensor]:
    """Return squared errors, and half their gradient."""
    error = values_B - returns_B
    if value_clip is None:
        return error.square(), error
    moved = values_B - old_values_B
    held_error = moved.clamp(-value_clip, value_clip).add_(old_values_B).sub_(returns_B)
    free_square, held_square = error.square(), held_error.square()
    is_free = moved.abs() <= value_clip
    gradient = torch.where(free_square >= held_square, error, held_error * is_free)
    return torch.maximum(free_square, held_square), gradient


def _mean(values_B: Tensor, weights_B: Tensor | None) -> Tensor:
    return values_B.mean() if weights_B is None else (values_B * weights_B).sum() / weights_B.sum()
