"""PPO's objective against the formula as papers write it, differentiated by torch."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from hookloop.core import TrainerState
from hookloop.errors import ConfigError, ScheduleError
from hookloop.rl.losses.base import Gate, Loss, Statistics, epoch_gate
from hookloop.rl.losses.ppo import PPO, normalised
from hookloop.rl.sampling import Minibatch


def case(rows: int, seed: int, *, weights: bool = False):
    generator = torch.Generator().manual_seed(seed)

    def draw() -> torch.Tensor:
        return torch.randn(rows, generator=generator, dtype=torch.float64)

    minibatch = Minibatch(
        obs=draw(), actions=draw(), log_probs=draw() * 0.3, values=draw(), advantages=draw(), returns=draw(),
        weights=torch.rand(rows, generator=generator, dtype=torch.float64) if weights else None,
    )  # fmt: skip
    evaluated = SimpleNamespace(
        log_probs=(minibatch.log_probs + draw() * 0.3).requires_grad_(),
        entropy=draw().abs().requires_grad_(),
        values=(minibatch.values + draw() * 0.3).requires_grad_(),
    )
    return SimpleNamespace(minibatch=minibatch, evaluated=evaluated)


def plain_objective(loss: PPO, shared) -> torch.Tensor:
    rows, now = shared.minibatch, shared.evaluated
    weights = torch.ones_like(rows.advantages) if rows.weights is None else rows.weights

    def mean(values: torch.Tensor) -> torch.Tensor:
        return (values * weights).sum() / weights.sum()

    advantages = normalised(rows.advantages, rows.weights) if loss.normalise_advantages else rows.advantages
    ratio = (now.log_probs - rows.log_probs).exp()
    policy = -mean(torch.min(ratio * advantages, ratio.clamp(1 - loss.clip, 1 + loss.clip) * advantages))
    squared = (now.values - rows.returns) ** 2
    if loss.value_clip is not None:
        held = rows.values + (now.values - rows.values).clamp(-loss.value_clip, loss.value_clip)
        squared = torch.max(squared, (held - rows.returns) ** 2)
    value = 0.5 * mean(squared)
    return policy + loss.value_coefficient * value - loss.entropy_coefficient * mean(now.entropy)


@pytest.mark.parametrize("value_clip", [None, 0.2])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_loss_and_gradients_equal_the_formula(value_clip, weights: bool, normalise: bool, seed: int) -> None:
    loss = PPO(value_clip=value_clip, entropy_coefficient=0.01, normalise_advantages=normalise)
    shared = case(64, seed, weights=weights)
    leaves = (shared.evaluated.log_probs, shared.evaluated.entropy, shared.evaluated.values)

    ours = loss.run_train(shared, TrainerState())
    our_gradients = torch.autograd.grad(ours, leaves)
    formula = plain_objective(loss, shared)
    gradients = torch.autograd.grad(formula, leaves)

    torch.testing.assert_close(ours, formula)
    for mine, reference in zip(our_gradients, gradients, strict=True):
        torch.testing.assert_close(mine, reference)


def test_statistics_are_means_over_the_minibatches_and_begin_anew() -> None:
    loss = PPO(normalise_advantages=False)
    shared = case(8, 0)
    shared.evaluated.log_probs = shared.minibatch.log_probs.clone().requires_grad_()

    loss.run_train(shared, TrainerState())
    loss.run_train(shared, TrainerState())
    means = loss.statistics.means()

    assert means["approx_kl"] == pytest.approx(0.0)
    assert means["clip_fraction"] == 0.0
    assert means["entropy"] == pytest.approx(float(shared.evaluated.entropy.detach().mean()))
    assert loss.statistics.means() == {}


def test_statistics_average_by_name() -> None:
    statistics = Statistics()
    statistics.add(("a", "b"), torch.tensor([1.0, 2.0]))
    statistics.add(("a", "b"), torch.tensor([3.0, 6.0]))

    assert statistics.means() == {"a": 2.0, "b": 4.0}


def test_a_policy_that_moved_too_far_ends_the_passes_of_the_epoch() -> None:
    loss = PPO(target_kl=0.01)
    state = TrainerState()
    shared = case(64, 0)

    loss.run_train(shared, state)
    loss.end_pass(state)

    assert state.stop_update_epoch


def test_a_policy_that_stayed_near_goes_on() -> None:
    loss = PPO(target_kl=0.01)
    state = TrainerState()
    shared = case(64, 0)
    shared.evaluated.log_probs = shared.minibatch.log_probs.clone().requires_grad_()

    loss.run_train(shared, state)
    loss.end_pass(state)

    assert not state.stop_update_epoch


def test_a_loss_that_is_switched_off_gives_a_zero_without_gradient_and_touches_nothing() -> None:
    class Counting(Loss):
        calls = 0

        def run_train(self, shared_loss_data, trainer_state):
            self.calls += 1
            return torch.ones((), requires_grad=True)

    loss = Counting(train_schedule="from 2 epochs")
    state = TrainerState()

    off = loss.train(SimpleNamespace(), state)
    state.clocks.epochs = 2
    on = loss.train(SimpleNamespace(), state)

    assert (off.item(), off.dtype, off.shape, off.requires_grad) == (0.0, torch.float32, torch.Size([]), False)
    assert on.requires_grad
    assert loss.calls == 1


def test_the_four_parameters_of_base_loss_gate_as_they_did() -> None:
    gate = Gate(epoch_gate(begin_at_epoch=2, end_at_epoch=9, cycle_length=4, active_in_cycle=(1, 3)), "ppo")
    state = TrainerState()
    open_at = []
    for epoch in range(14):
        state.clocks.epochs = epoch
        if gate.is_open(state):
            open_at.append(epoch)

    assert open_at == [2, 4, 6, 8]


def test_a_gate_of_single_ticks_is_refused_with_the_way_to_write_it() -> None:
    with pytest.raises(ScheduleError, match=r"ppo.train_schedule is 'every 4 epochs'.*cycle 4 epochs on 1"):
        PPO(train_schedule="every 4 epochs")


def test_a_clip_range_must_be_positive() -> None:
    with pytest.raises(ConfigError, match="clip must be above 0, got 0"):
        PPO(clip=0)
