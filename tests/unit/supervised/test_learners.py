"""Several learners of supervised learning: the batches of one are shared out, and stepped along together."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from hookloop.core import HookManager
from hookloop.errors import ConfigError
from hookloop.supervised import Trainer, TrainingConfig
from hookloop.supervised.data import DataLoaderFactory
from hookloop.testing import FakeRanks


@given(
    st.integers(1, 40), st.integers(1, 4), st.integers(1, 4), st.booleans(), st.booleans(), st.booleans(),
    st.integers(0, 3),
)  # fmt: skip
def test_the_shares_of_all_learners_are_the_batches_of_one(
    samples: int, world_size: int, share: int, shuffle: bool, drop_last: bool, is_list: bool, start: int
) -> None:
    data = [torch.tensor(number) for number in range(samples)] if is_list else torch.arange(samples)
    factory = DataLoaderFactory(batch_size=share * world_size, seed=1, drop_last=drop_last)
    if samples < world_size or (drop_last and samples < factory.batch_size):
        return
    whole = [batch.tolist() for batch in factory.make(data, shuffle=shuffle).iterate(2, start)]

    shares: list[list[list[int]]] = []
    for rank in range(world_size):
        source: Any = factory.make(data, shuffle=shuffle)
        source.share(rank, world_size)
        shares.append([batch.tolist() for batch in source.iterate(2, start)])
        assert [len(batch) for batch in shares[-1]] == [source.own_size_of(start + n) for n in range(len(shares[-1]))]

    joined = [[sample for part in parts for sample in part] for parts in zip(*shares, strict=True)]
    assert joined == [batch for batch in whole if len(batch) >= world_size]


def train(ranks: FakeRanks, model: nn.Module, data: Any, **options: Any) -> Trainer:
    config = TrainingConfig(**{"epochs": 2, "batch_size": 4, "learning_rate": 0.1, "loss": "regression", **options})
    trainer = Trainer(model, None, config, HookManager(ranks=ranks))
    trainer.train(data)
    return trainer


def numbers(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(rows, 3, generator=generator), torch.randn(rows, 1, generator=generator)


def network() -> nn.Sequential:
    made = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    generator = torch.Generator().manual_seed(0)
    for parameter in made.parameters():
        nn.init.normal_(parameter, generator=generator)
    return made


def test_learners_have_the_same_weights_running_statistics_and_metrics() -> None:
    def act(ranks: FakeRanks) -> Any:
        seen: list[dict[str, float]] = []
        trainer = train(ranks, network(), numbers(20), gradient_accumulation_steps=2)
        seen.append(trainer.state.loss_stats)
        return {name: value.tolist() for name, value in trainer.model.state_dict().items()}, seen

    first, second = FakeRanks.run(2, act)

    assert first == second


def test_a_parameter_that_nobody_uses_is_left_alone() -> None:
    class Partial(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = nn.Linear(3, 1), nn.Linear(3, 1)

        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            return self.used(inputs)

    def act(ranks: FakeRanks) -> bool:
        model = Partial()
        before = model.unused.weight.clone()
        train(ranks, model, numbers(8), optimizer="adamw", weight_decay=0.5)
        return torch.equal(model.unused.weight, before)

    assert FakeRanks.run(2, act) == [True, True]


def test_a_main_hook_that_ends_an_epoch_ends_it_for_all() -> None:
    def act(ranks: FakeRanks) -> float:
        config = TrainingConfig(epochs=2, batch_size=2, learning_rate=0.1, loss="regression")
        hooks = HookManager(ranks=ranks)

        def end_epoch(ctx: Any) -> None:
            ctx.state.stop_update_epoch = ctx.batch_idx == 1

        hooks.add(end_epoch, on="minibatch_end")
        trainer = Trainer(network()[2], None, config, hooks)
        trainer.train((torch.randn(12, 4), torch.randn(12, 1)))
        return trainer.state.clocks.minibatches

    assert FakeRanks.run(2, act) == [4, 4]


def test_data_without_numbers_cannot_be_shared() -> None:
    def stream() -> Any:
        class Rows(torch.utils.data.IterableDataset[Any]):
            def __iter__(self) -> Any:
                return iter([(torch.zeros(3), torch.zeros(1))] * 8)

        return Rows()

    with pytest.raises(ConfigError, match="StreamSource, whose order is its own, and cannot be shared by 2 learners"):
        FakeRanks.run(2, lambda ranks: train(ranks, network(), stream()))


def test_sparse_gradients_are_refused() -> None:
    def act(ranks: FakeRanks) -> None:
        model = nn.Sequential(nn.Embedding(5, 1, sparse=True), nn.Flatten())
        train(ranks, model, (torch.arange(4), torch.zeros(4, 1)), optimizer="sgd", max_grad_norm=None)

    with pytest.raises(ConfigError, match="sparse=False"):
        FakeRanks.run(2, act)
