"""The house rule for supervised learning: N + resume N equals 2N, bit for bit, from any batch on."""

from __future__ import annotations

import copy
import gc
import multiprocessing
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, WeightedRandomSampler

from hookloop.core import HookContext
from hookloop.supervised import Trainer, TrainingConfig
from tests.waiting import PATIENCE_SECONDS

SAMPLES, EPOCHS = 47, 3


class Squares(Dataset):
    """A map dataset that draws at random, as augmentation does."""

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.tensor([index / SAMPLES, 1.0]) + 0.01 * torch.randn(2)
        return x, (x[:1] ** 2)


class Stream(IterableDataset):
    """An iterable dataset that draws at random."""

    def __iter__(self) -> Any:
        for index in range(SAMPLES):
            x = torch.tensor([index / SAMPLES, 1.0]) + 0.01 * torch.randn(2)
            yield x, x[:1] ** 2


def tensors() -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.linspace(-1, 1, 2 * SAMPLES).reshape(SAMPLES, 2)
    return x, x.square().sum(1, keepdim=True)


def columns() -> dict[str, torch.Tensor]:
    x, y = tensors()
    return {"x": x, "labels": y}


def weighted_loader() -> DataLoader:
    sampler = WeightedRandomSampler(torch.linspace(0.1, 1, SAMPLES).tolist(), SAMPLES)
    return DataLoader(Squares(), batch_size=5, sampler=sampler)


DATA: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "tensors": (tensors, {}),
    "columns": (columns, {}),
    "map dataset": (Squares, {}),
    "workers": (Squares, {"num_workers": 2}),
    "loader": (lambda: DataLoader(Squares(), batch_size=5, shuffle=True), {}),
    "loader with a sampler": (weighted_loader, {}),
    "iterable": (Stream, {}),
    "accumulation": (tensors, {"gradient_accumulation_steps": 3}),
    "accumulation of an iterable": (Stream, {"gradient_accumulation_steps": 4}),
    "bf16": (tensors, {"precision": "bf16"}),
    "fp16": (tensors, {"precision": "fp16"}),
    "fp16 with accumulation": (tensors, {"precision": "fp16", "gradient_accumulation_steps": 3}),
    "schedule": (tensors, {"lr_schedule": "cosine", "warmup_steps": 4}),
    "sgd with momentum": (tensors, {"optimizer": "sgd", "momentum": 0.9}),
    "training metrics": (tensors, {"train_metrics": True}),
}


def make_trainer(**settings: Any) -> Trainer:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.Dropout(0.2), nn.ReLU(), nn.Linear(8, 1))
    given = {"learning_rate": 1e-2, "batch_size": 5, "epochs": EPOCHS, "max_grad_norm": 0.5, **settings}
    return Trainer(model, training_config=TrainingConfig(**given))


def ending(trainer: Trainer) -> dict[str, Any]:
    clocks = {name: value for name, value in trainer.state.clocks.reading().items() if name != "seconds"}
    return {"clocks": clocks, "rows": trainer.metrics_tracker.rows, "metrics": trainer.loop.context.metrics}


class Saver:
    """Saves after some batches and at the ends of epochs, as a checkpoint would."""

    def __init__(self, at: set[int]) -> None:
        self._at = at
        self._saves: dict[str, Any] = {}

    @property
    def saves(self) -> dict[str, Any]:
        return self._saves

    def on_minibatch_end(self, ctx: HookContext) -> None:
        if ctx.state.clocks.minibatches in self._at:
            self._save(ctx, f"batch {ctx.state.clocks.minibatches}")

    def on_epoch_end(self, ctx: HookContext) -> None:
        self._save(ctx, f"epoch {ctx.state.epoch}")

    def _save(self, ctx: HookContext, name: str) -> None:
        assert ctx.loop is not None
        self._saves[name] = copy.deepcopy(ctx.loop.state_dict())


@pytest.mark.parametrize("case", DATA)
def test_training_resumes_bit_for_bit_from_the_middle_of_an_epoch(case: str) -> None:
    make_data, settings = DATA[case]
    whole, saver = make_trainer(**settings), Saver({1, 13, 20})
    whole.add_hook(saver, name="saver", stage="checkpoint")
    whole.train(make_data(), tensors() if case != "columns" else columns())

    assert {"batch 13", "epoch 1"} <= set(saver.saves)
    for name in ("batch 1", "batch 13", "batch 20", "epoch 1"):
        resumed = make_trainer(**settings)
        resumed.add_hook(Saver(set()), name="saver", stage="checkpoint")
        resumed.load_state_dict(saver.saves[name])
        resumed.train(make_data(), tensors() if case != "columns" else columns())

        for key, value in whole.model.state_dict().items():
            assert torch.equal(resumed.model.state_dict()[key], value), (name, key)
        assert ending(resumed) == ending(whole), name


def test_a_run_that_is_stopped_in_mid_epoch_goes_on_from_its_checkpoint(tmp_path: Any) -> None:
    def stop(ctx: HookContext) -> None:
        if ctx.state.clocks.minibatches == 13:
            ctx.request_stop("enough for today")

    settings = {"gradient_accumulation_steps": 4, "checkpoint_dir": str(tmp_path / "one")}
    whole = make_trainer(**{**settings, "checkpoint_dir": str(tmp_path / "two")})
    whole.train(tensors())
    stopped = make_trainer(**settings)
    stopped.add_hook(stop, name="stop", on="minibatch_end")
    first = stopped.train(tensors())
    assert (first.outcome, first.epochs) == ("stopped", 1)

    resumed = make_trainer(**settings)
    resumed.add_hook(lambda ctx: setattr(ctx.state, "stop", None), name="go on", on="training_start")
    result = resumed.train(tensors(), resume_from="latest")

    assert result.outcome == "completed"
    assert ending(resumed) == ending(whole)
    for one, other in zip(resumed.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_the_numbers_of_workers_do_not_change_the_data() -> None:
    one, two = make_trainer(num_workers=1), make_trainer(num_workers=2)

    one.train(Squares())
    two.train(Squares())

    assert ending(one) == ending(two)


def test_worker_processes_end_with_training_at_once_and_begin_anew_when_it_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL", 2 * PATIENCE_SECONDS)
    trainer = make_trainer(num_workers=2)
    trainer.train(Squares(), Squares(), epochs=1)
    assert multiprocessing.active_children() == []

    began = time.monotonic()
    del trainer
    gc.collect()
    assert time.monotonic() - began < PATIENCE_SECONDS, "torch waits so long for each worker whose queue is gone"


def test_other_data_are_refused_in_mid_epoch() -> None:
    whole, saver = make_trainer(), Saver({3})
    whole.add_hook(saver, name="saver")
    whole.train(tensors())
    resumed = make_trainer()
    resumed.add_hook(Saver(set()), name="saver")
    resumed.load_state_dict(saver.saves["batch 3"])
    x, y = tensors()

    with pytest.raises(ValueError, match="samples was 47, now it is 40"):
        resumed.train((x[:40], y[:40]))


def test_an_observer_that_draws_fails_and_saves_does_not_change_training() -> None:
    plain, watched = make_trainer(gradient_accumulation_steps=2), make_trainer(gradient_accumulation_steps=2)
    watched.add_hook(lambda ctx: {"draw": ctx.rng.random()}, name="draws", on="minibatch_end")
    watched.add_hook(lambda: 1 / 0, name="fails", on="minibatch_end", on_error="disable")
    watched.add_hook(Saver(set(range(100))), name="saver")

    plain.train(tensors(), tensors())
    watched.train(tensors(), tensors())

    assert ending(plain) == ending(watched)
