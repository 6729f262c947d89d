"""The flat optimizer equals torch's own, and resumes."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from hookloop.errors import HookStateError
from hookloop.rl.optimizer import FlatAdam


def network(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))


def take_steps(net: nn.Module, step, count: int, seed: int = 1) -> None:
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        loss = net(torch.randn(16, 3, generator=generator)).square().sum() * 3
        loss.backward()
        step()


def test_steps_equal_those_of_torch_with_clipping() -> None:
    ours, theirs = network(), network()
    flat = FlatAdam(ours, learning_rate=1e-2, max_grad_norm=0.5)
    adam = torch.optim.Adam(theirs.parameters(), lr=1e-2, eps=1e-5)

    def our_step() -> None:
        flat.clip()
        flat.step()
        flat.zero_grad()

    def their_step() -> None:
        nn.utils.clip_grad_norm_(theirs.parameters(), 0.5)
        adam.step()
        adam.zero_grad()

    take_steps(ours, our_step, 10)
    take_steps(theirs, their_step, 10)

    for mine, reference in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, reference, rtol=1e-5, atol=1e-6)


def test_parameters_keep_their_names_shapes_and_values_in_the_flat_buffer() -> None:
    net = network()
    before = {name: value.clone() for name, value in net.state_dict().items()}

    flat = FlatAdam(net)

    assert {name: tuple(value.shape) for name, value in net.state_dict().items()} == {
        name: tuple(value.shape) for name, value in before.items()
    }
    assert all(torch.equal(net.state_dict()[name], value) for name, value in before.items())
    assert flat.flat.numel() == sum(value.numel() for value in before.values())


def test_it_resumes_bit_for_bit() -> None:
    def stepper(flat: FlatAdam):
        def step() -> None:
            flat.clip()
            flat.step()
            flat.zero_grad()

        return step

    whole, first = network(), network()
    whole_adam, first_adam = FlatAdam(whole), FlatAdam(first)
    take_steps(whole, stepper(whole_adam), 3, seed=1)
    take_steps(whole, stepper(whole_adam), 3, seed=2)
    take_steps(first, stepper(first_adam), 3, seed=1)
    second = network(seed=9)
    second_adam = FlatAdam(second)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    second_adam.load_state_dict(first_adam.state_dict())

    take_steps(second, stepper(second_adam), 3, seed=2)

    assert torch.equal(second_adam.flat, whole_adam.flat)


def test_a_save_of_another_network_is_refused() -> None:
    saved = FlatAdam(network()).state_dict()

    with pytest.raises(HookStateError, match="another network"):
        FlatAdam(nn.Linear(3, 2)).load_state_dict(saved)


def test_a_norm_that_was_asked_for_is_not_used_for_gradients_that_have_changed_since() -> None:
    asked, not_asked = network(), network()
    optimizers = [FlatAdam(net, learning_rate=1e-2, max_grad_norm=0.5) for net in (asked, not_asked)]
    for net in (asked, not_asked):
        net(torch.ones(4, 3)).square().sum().backward()

    before = optimizers[0].gradient_norm()
    assert optimizers[0].gradient_norm() is before
    for net in (asked, not_asked):
        for parameter in net.parameters():
            assert parameter.grad is not None
            parameter.grad.mul_(3)
    norms = [optimizer.clip() for optimizer in optimizers]

    assert torch.equal(norms[0], norms[1])
    assert torch.equal(optimizers[0].gradients, optimizers[1].gradients)
