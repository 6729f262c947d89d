"""Seed 003: the sixteen tests that it names, by those names; two of them failed in the seed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from pydantic import BaseModel
from torch import nn

from hookloop.checkpoints import CheckpointStore
from hookloop.supervised import DefaultHooks, TaskSpec, Trainer, TrainingConfig

VOCABULARY, LENGTH = 20, 8


class TinyLanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 16)
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(16, VOCABULARY)

    def forward(self, input_ids):
        return self.head(self.dropout(self.embedding(input_ids)))


@pytest.fixture
def model():
    torch.manual_seed(0)
    return TinyLanguageModel()


@pytest.fixture
def model_config():
    return SimpleNamespace(vocab_size=VOCABULARY, modality="text", pad_token_id=0)


@pytest.fixture
def train_dataset():
    generator = torch.Generator().manual_seed(1)
    starts = torch.randint(1, VOCABULARY, (40, 1), generator=generator)
    return [row for row in (starts + torch.arange(LENGTH)) % VOCABULARY]  # a list, as users have them


@pytest.fixture
def val_dataset(train_dataset):
    return train_dataset[:10]


def make_config(**settings: Any) -> TrainingConfig:
    return TrainingConfig(**{"learning_rate": 5e-3, "batch_size": 4, "epochs": 2, **settings})


class Recorder:
    def __init__(self):
        self.calls = []

    def on_training_start(self):
        self.calls.append("training_start")

    def on_epoch_start(self, epoch):
        self.calls.append(("epoch_start", epoch))

    def on_batch_end(self, batch_idx, loss):
        self.calls.append(("batch_end", batch_idx, f"{loss:.4f}"))

    def on_validation_end(self, metrics):
        self.calls.append(("validation_end", dict(metrics)))

    def on_epoch_end(self, epoch, metrics):
        self.calls.append(("epoch_end", epoch, dict(metrics)))

    def on_training_end(self):
        self.calls.append("training_end")


def test_trainer_initialization(model, model_config, tmp_path):
    trainer = Trainer(model, model_config, make_config(checkpoint_dir=str(tmp_path)))

    assert trainer.optimizer.param_groups[0]["lr"] == 5e-3
    assert trainer.objective.strategy.name == "language_modeling"
    assert trainer.accumulator.accumulation_steps == 1
    assert trainer.hooks.order() == ["validation", "metrics_tracker", "gradient_monitor", "checkpoint/save"]


def test_trainer_validation_fails_with_invalid_config():
    with pytest.raises(ValueError, match="TrainingConfig is not valid") as refusal:
        TrainingConfig(learning_rate=-1.0, batch_size=0, epochs=0, warmup_stepz=3)

    for mistake in ("learning_rate is -1.0", "batch_size is 0", "epochs is 0", "Did you mean 'warmup_steps'"):
        assert mistake in str(refusal.value)


def test_trainer_custom_hooks(model, model_config, train_dataset, capsys):
    class CustomHooks:
        def on_epoch_end(self, epoch, metrics):
            print(f"Epoch {epoch} complete: {metrics}")  # noqa: T201  # as the seed writes it

    trainer = Trainer(model=model, config=model_config, training_config=make_config(), hooks=CustomHooks())
    trainer.train(train_data=train_dataset)

    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("Epoch 1 complete: {'loss': ")
    assert second.startswith("Epoch 2 complete: {'loss': ")


def test_trainer_train_completes_all_epochs(model, model_config, train_dataset):
    results = Trainer(model, model_config, make_config(epochs=4), DefaultHooks()).train(train_data=train_dataset)

    assert results["epochs"] == 4
    assert len(results["metrics_summary"]) == 4
    assert results["final_loss"] < results["loss_history"][0]
    assert results["training_time"] > 0
    assert (results.outcome, results.optimizer_steps) == ("completed", 40)


def test_trainer_train_with_validation(model, model_config, train_dataset, val_dataset):
    results = Trainer(model, model_config, make_config()).train(train_data=train_dataset, val_data=val_dataset)

    last = results.metrics_summary[-1]
    assert last["val_loss"] > 0
    assert last["val_loss"] != last["loss"]
    assert 0 <= last["val_accuracy"] <= 1
    assert last["val_perplexity"] == pytest.approx(torch.tensor(last["val_loss"]).exp().item())
    assert results["best_epoch"] == 2
    assert model.training


def test_trainer_checkpoint_saving_at_intervals(model, model_config, train_dataset, tmp_path):
    config = make_config(epochs=5, checkpoint_dir=str(tmp_path), save_every_epochs=2)

    results = Trainer(model, model_config, config).train(train_data=train_dataset)

    saved = [checkpoint.manifest.epochs for checkpoint in CheckpointStore(tmp_path).sound()]
    assert saved == [2, 4, 5]
    assert Path(results["checkpoint_path"]).is_dir()


def test_trainer_hook_invocation_order(model, model_config, train_dataset, val_dataset):
    hooks = Recorder()

    Trainer(model, model_config, make_config(batch_size=20), hooks).train(train_dataset, val_dataset)

    names = [call if isinstance(call, str) else call[0] for call in hooks.calls]
    epoch = ["epoch_start", "batch_end", "batch_end", "validation_end", "epoch_end"]
    assert names == ["training_start", *epoch, *epoch, "training_end"]


@dataclass
class AsDataclass:
    modality: str = "text"


class AsPydantic(BaseModel):
    modality: str = "text"


@pytest.mark.parametrize(
    "config", [SimpleNamespace(modality="text"), AsDataclass(), AsPydantic(), {"modality": "text"}]
)
def test_trainer_works_with_simplenamespace_config(model, train_dataset, config):
    trainer = Trainer(model, config, make_config())

    assert trainer.train(train_dataset).outcome == "completed"
    assert trainer.objective.strategy.name == "language_modeling"


def test_trainer_without_task_spec(model, train_dataset):
    without = Trainer(model, None, make_config())
    with_task = Trainer(TinyLanguageModel(), None, make_config(), task_spec=TaskSpec(modality="text"))

    without.train(train_dataset)
    with_task.train(train_dataset)

    assert without.objective.strategy.name == with_task.objective.strategy.name == "language_modeling"


def test_trainer_handles_empty_dataset_gracefully(model, model_config):
    with pytest.raises(ValueError, match="training data are empty: they hold no samples"):
        Trainer(model, model_config, make_config()).train(train_data=[])


def test_trainer_handles_missing_validation_gracefully(model, model_config, train_dataset):
    hooks = Recorder()

    results = Trainer(model, model_config, make_config(), hooks).train(train_dataset, val_data=None)

    assert not any(name.startswith("val_") for row in results.metrics_summary for name in row)
    assert "validation_end" not in [call[0] for call in hooks.calls]
    assert results["val_loss_history"] == [None, None]


def test_trainer_integration_end_to_end(model, model_config, train_dataset, val_dataset, tmp_path):
    config = make_config(
        epochs=10, learning_rate=1e-2, checkpoint_dir=str(tmp_path), lr_schedule="cosine", warmup_steps=5,
        gradient_accumulation_steps=2, keep_last=2, keep_best=1,
    )  # fmt: skip

    results = Trainer(model, model_config, config).train(train_dataset, val_dataset)

    assert results["final_loss"] < 1.0
    assert results.metrics_summary[-1]["val_accuracy"] > 0.9
    assert len(CheckpointStore(tmp_path).names()) <= 4


def test_trainer_gradient_accumulation(model, model_config, train_dataset):
    config = make_config(epochs=1, gradient_accumulation_steps=4)

    results = Trainer(model, model_config, config).train(train_dataset)

    assert results.optimizer_steps == 3  # ten batches: four, four, and two that are not lost
    assert results.loop.clocks["minibatches"] == 10


def test_trainer_respects_training_config_settings(model, model_config, train_dataset):
    rates = []
    config = make_config(
        epochs=2, optimizer="sgd", momentum=0.5, lr_schedule="linear", warmup_steps=4, max_grad_norm=0.1
    )

    trainer = Trainer(model, model_config, config)
    trainer.add_hook(lambda optimizer: rates.append(optimizer.param_groups[0]["lr"]), name="rates", on="optimizer_step")
    trainer.train(train_dataset)

    assert isinstance(trainer.optimizer, torch.optim.SGD)
    assert len(rates) == 20
    assert rates[3] == max(rates) == 5e-3
    assert rates[-1] == pytest.approx(5e-3 / 16)
    assert trainer.accumulator.learning_rate == 0.0


def test_trainer_resume_from_checkpoint(train_dataset, val_dataset, model_config, tmp_path):
    def build(folder: str, epochs: int) -> Trainer:
        torch.manual_seed(0)
        config = make_config(epochs=epochs, checkpoint_dir=str(tmp_path / folder), keep_last=20)
        return Trainer(TinyLanguageModel(), model_config, config)

    whole = build("whole", 8)
    expected = whole.train(train_dataset, val_dataset)
    build("part", 6).train(train_dataset, val_dataset)
    resumed = build("part", 8)

    results = resumed.train(
        train_data=train_dataset, val_data=val_dataset, resume_from=str(tmp_path / "part" / "checkpoint_epoch0005.pt")
    )

    assert results.metrics_summary == expected.metrics_summary
    for name, weight in whole.model.state_dict().items():
        assert torch.equal(resumed.model.state_dict()[name], weight)


def test_trainer_validation_hook_called(model, model_config, train_dataset, val_dataset):
    hooks = Recorder()

    Trainer(model, model_config, make_config(), hooks).train(train_dataset, val_dataset)

    seen = [call[1] for call in hooks.calls if call[0] == "validation_end"]
    assert len(seen) == 2
    assert set(seen[0]) == {"val_loss", "val_accuracy", "val_perplexity"}


def test_the_three_usage_examples_of_the_seed_run_as_written(
    model, model_config, train_dataset, val_dataset, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)

    config = TrainingConfig(
        learning_rate=5e-5,
        batch_size=4,
        epochs=10,
        checkpoint_dir='./checkpoints'
    )  # fmt: skip

    trainer = Trainer(
        model=model,
        config=model_config,
        training_config=config
    )  # fmt: skip

    results = trainer.train(
        train_data=train_dataset,
        val_data=val_dataset
    )  # fmt: skip
    assert results.epochs == 10

    results = trainer.train(
        train_data=train_dataset,
        val_data=val_dataset,
        resume_from='./checkpoints/checkpoint_epoch0005.pt'
    )  # fmt: skip
    assert results.epochs == 10
    assert results.loop.clocks["minibatches"] == 100
