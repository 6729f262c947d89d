"""The trainer computes what a loop written by hand computes, to the last bit."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from hookloop.core import derive_seed
from hookloop.supervised import Trainer, TrainingConfig
from hookloop.supervised.data import order_of
from hookloop.supervised.seeds import set_seed

SEED, SAMPLES, BATCH, EPOCHS = 7, 50, 8, 3


def make_model() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 16), nn.Dropout(0.1), nn.ReLU(), nn.Linear(16, 3))


def make_data() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(SAMPLES, 4, generator=generator)
    return x, torch.randint(0, 3, (SAMPLES,), generator=generator)


def bare_loop(model: nn.Module, *, accumulate: int = 1, clip: float | None = None) -> list[float]:
    x, y = make_data()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.01, fused=True)
    losses: list[float] = []
    set_seed(SEED)
    for epoch in range(EPOCHS):
        order = order_of(SAMPLES, seed=derive_seed(SEED, "data"), epoch=epoch, shuffle=True)
        for number, index in enumerate(order.split(BATCH)):
            loss = functional.cross_entropy(model(x[index]), y[index])
            (loss if accumulate == 1 else loss / accumulate).backward()
            losses.append(loss.item())
            if (number + 1) % accumulate == 0:
                if clip is not None:
                    torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
                optimizer.step()
                optimizer.zero_grad()
    return losses


@pytest.mark.parametrize("clip", [None, 0.1])
def test_losses_and_weights_are_those_of_a_bare_loop_bit_for_bit(clip: float | None) -> None:
    by_hand, trained = make_model(), make_model()
    expected = bare_loop(by_hand, clip=clip)
    losses: list[float] = []
    config = TrainingConfig(seed=SEED, batch_size=BATCH, epochs=EPOCHS, learning_rate=1e-2, max_grad_norm=clip)

    trainer = Trainer(trained, training_config=config)
    trainer.add_hook(lambda loss: losses.append(loss.item()), name="losses", on="minibatch_end")
    trainer.train(make_data())

    assert losses == expected
    for name, value in by_hand.state_dict().items():
        assert torch.equal(trained.state_dict()[name], value)


def sgd(**settings: Any) -> TrainingConfig:
    given = {"optimizer": "sgd", "learning_rate": 0.1, "weight_decay": 0.0, "max_grad_norm": None, "epochs": 2}
    return TrainingConfig(**{**given, **settings})


@pytest.mark.parametrize("samples", [48, 50, 57])
def test_k_batches_of_b_are_one_batch_of_kb(samples: int) -> None:
    generator = torch.Generator().manual_seed(3)
    x, y = torch.randn(samples, 4, generator=generator), torch.randn(samples, 1, generator=generator)
    torch.manual_seed(1)
    small = nn.Linear(4, 1).double()
    large = nn.Linear(4, 1).double()
    large.load_state_dict(small.state_dict())
    data = x.double(), y.double()

    one = Trainer(small, training_config=sgd(batch_size=4, gradient_accumulation_steps=3)).train(data)
    other = Trainer(large, training_config=sgd(batch_size=12)).train(data)

    assert one.optimizer_steps == other.optimizer_steps == 2 * -(-samples // 12)
    for left, right in zip(small.parameters(), large.parameters(), strict=True):
        torch.testing.assert_close(left, right, rtol=0, atol=1e-14)
