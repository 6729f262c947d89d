"""The default optimizer is torch's to the bit, and starts without torch's compiler."""

from __future__ import annotations

import subprocess
import sys
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import nn

from hookloop.supervised import GradientAccumulator, TrainingConfig
from hookloop.supervised.adam import FusedAdam
from hookloop.supervised.optimizers import load_optimizer, make_optimizer, save_optimizer

TORCHS = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam}


def make_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(2, 2))


def step(model: Any, optimizer: torch.optim.Optimizer, times: int) -> None:
    for number in range(times):
        optimizer.zero_grad()
        inputs = torch.full((3, 4), number + 1.0)
        model[1](model[0](inputs)).square().sum().backward()  # the last layer never has a gradient
        optimizer.step()


def weights(model: nn.Module) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in model.parameters()]


def is_same(first: nn.Module, second: nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(weights(first), weights(second), strict=True))


@pytest.mark.parametrize("kind", ["adamw", "adam"])
def test_a_step_has_the_bits_of_torchs_fused_kernel(kind: Any) -> None:
    ours, torchs = make_model(), make_model()
    config = TrainingConfig(optimizer=kind, learning_rate=0.1, weight_decay=0.05, betas=(0.8, 0.99), eps=1e-6)
    optimizer = make_optimizer(ours, config)

    step(ours, optimizer, 5)
    step(torchs, TORCHS[kind](torchs.parameters(), 0.1, (0.8, 0.99), 1e-6, 0.05, fused=True), 5)

    assert isinstance(optimizer, FusedAdam)
    assert is_same(ours, torchs)


@pytest.mark.parametrize("kind", ["adamw", "adam"])
def test_what_torchs_optimizer_has_saved_can_be_gone_on_from(kind: Any) -> None:
    ours, torchs = make_model(), make_model()
    saving = TORCHS[kind](torchs.parameters(), lr=0.1, weight_decay=0.05, fused=True)
    step(torchs, saving, 3)
    ours.load_state_dict(torchs.state_dict())
    going_on = make_optimizer(ours, TrainingConfig(optimizer=kind, learning_rate=0.3, weight_decay=0.0))
    load_optimizer(going_on, deepcopy(save_optimizer(saving)))

    step(ours, going_on, 2)
    step(torchs, saving, 2)

    assert is_same(ours, torchs)


def test_hooks_of_an_optimizer_see_its_steps() -> None:
    model, seen = make_model(), []
    optimizer = make_optimizer(model, TrainingConfig())
    optimizer.register_step_post_hook(lambda *_: seen.append("stepped"))

    step(model, optimizer, 2)

    assert seen == ["stepped", "stepped"]


def test_parameters_of_two_types_are_left_to_torch() -> None:
    model = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2).double()])

    assert type(make_optimizer(model, TrainingConfig())) is torch.optim.AdamW


def test_an_optimizer_with_a_zero_grad_of_its_own_zeroes_itself() -> None:
    class Counting(torch.optim.SGD):
        zeroed = 0

        def zero_grad(self, set_to_none: bool = True) -> None:
            self.zeroed += 1
            super().zero_grad(set_to_none)

    model = nn.Linear(2, 1)
    optimizer = Counting(model.parameters(), lr=0.1)
    accumulator = GradientAccumulator(model, optimizer)

    accumulator.accumulate(model(torch.ones(1, 2)).sum())

    assert optimizer.zeroed == 1
    assert model.weight.grad is None


def test_training_does_not_import_torchs_compiler() -> None:
    program = """
import sys, torch
from torch import nn
from hookloop.supervised import Trainer, TrainingConfig
trainer = Trainer(nn.Linear(4, 2), training_config=TrainingConfig(epochs=2))
trainer.train((torch.randn(64, 4), torch.zeros(64).long()), (torch.randn(8, 4), torch.zeros(8).long()))
trainer.load_state_dict(trainer.state_dict())
print("torch._dynamo" in sys.modules, "sympy" in sys.modules)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ended.stdout.split() == ["False", "False"]
