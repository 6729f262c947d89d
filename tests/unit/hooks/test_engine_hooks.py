"""Hooks that look at confidence, drift and sudden changes for the worse."""

from __future__ import annotations

import copy
import logging
from typing import Any

import pytest
import torch
from torch import nn

from hookloop.core import HookContext
from hookloop.errors import RegistrationError
from hookloop.hooks import AlertHook, ConfidenceHook, DriftHook, StatsHook
from hookloop.stats import StatsClient, StatsReader
from hookloop.supervised import Trainer, TrainingConfig
from hookloop.supervised.engine.confidence import confidence_of
from hookloop.testing import Harness, assert_pure, assert_resumable


def blobs(samples: int = 60) -> tuple[torch.Tensor, torch.Tensor]:
    labels = torch.arange(samples) % 3
    return torch.randn(samples, 4, generator=torch.Generator().manual_seed(0)) + torch.eye(4)[labels], labels


def make_trainer(*hooks: object, **settings: Any) -> Trainer:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.ReLU(), nn.Linear(8, 3))
    given = {"learning_rate": 1e-2, "batch_size": 10, "epochs": 4, **settings}
    return Trainer(model, training_config=TrainingConfig(**given), hooks=list(hooks))


class Rows:
    """Keeps what was logged, epoch by epoch, and may save the run at each of these batches."""

    name = "rows"
    stage = "report"
    saved = ("rows",)

    def __init__(self, save_after: int | None = None) -> None:
        self.rows: list[dict[str, float]] = []
        self._save_after, self._state = save_after, None

    @property
    def state(self) -> Any:
        return self._state

    def on_minibatch_end(self, ctx: HookContext) -> None:
        if ctx.state.clocks.minibatches == self._save_after and ctx.loop is not None:
            self._state = copy.deepcopy(ctx.loop.state_dict())

    def on_epoch_end(self, ctx: HookContext) -> None:
        rows = [row for row in ctx.drain_metrics() if row["hook"] in ("alert", "confidence", "drift")]
        self.rows.append({name: value for row in rows for name, value in row["values"].items()})


def test_confidence_is_that_of_the_answers_of_the_validation() -> None:
    rows, trainer = Rows(), make_trainer(ConfidenceHook())
    trainer.add_hook(rows)
    x, y = blobs()

    trainer.train((x, y), (x, y))

    trainer.model.eval()
    with torch.no_grad():
        expected = confidence_of(trainer.model(x), y)
    assert rows.rows[-1]["confidence/top1"] == pytest.approx(expected.top1, rel=1e-6)
    assert rows.rows[-1]["confidence/calibration_error"] == pytest.approx(expected.calibration_error, rel=1e-5)
    assert len(rows.rows) == 4
    assert trainer.workload.validation.answers == []


def test_a_few_answers_are_enough_if_one_says_so() -> None:
    rows, trainer = Rows(), make_trainer(ConfidenceHook(answers=5), val_batch_size=10)
    trainer.add_hook(rows)
    x, y = blobs()

    trainer.train((x, y), (x, y))

    trainer.model.eval()
    with torch.no_grad():
        expected = confidence_of(trainer.model(x[:10]), y[:10])
    assert rows.rows[-1]["confidence/top1"] == pytest.approx(expected.top1, rel=1e-6)


def test_a_loss_without_classes_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    trainer = make_trainer(ConfidenceHook(), loss="regression")
    x, _ = blobs()

    trainer.train((x, x[:, :3]), (x, x[:, :3]))

    assert [record.message for record in caplog.records] == [
        "there are no answers to look at: the run has no validation with a loss that knows classes"
    ]


def test_the_data_of_an_epoch_are_compared_with_those_of_the_first(caplog: pytest.LogCaptureFixture) -> None:
    harness = Harness(DriftHook())
    x, y = blobs(300)
    told: list[float] = []
    for shift in (0.0, 0.0, 9.0, 9.0, 0.0):
        harness.minibatch(batch=(x + shift, y))
        harness.epoch()
        told.append(harness.metrics.get("drift/inputs", -1.0))

    assert told == [-1, 0, 1, 1, 0]
    assert harness.metrics["drift/targets"] == 0
    assert [record.message for record in caplog.records] == [
        "drift alert after epoch 3: the inputs are 1 from the reference, 0.2 or more"
    ]


def test_data_can_be_compared_with_given_ones_and_only_so_many_batches() -> None:
    x, y = blobs(300)
    harness = Harness(DriftHook(reference=(x, y), batches=1))

    harness.minibatch(batch=(x, y))
    harness.minibatch(batch=(x + 9, y))
    harness.epoch()

    assert harness.metrics["drift/inputs"] == 0


def test_alerts_are_in_the_log_in_the_metrics_and_in_the_statistics(
    tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    values = iter([1.0, 0.9, 2.0, 1.9])
    trainer = make_trainer(AlertHook(), StatsHook(StatsClient(tmp_path / "stats.sqlite", run_id="mine")))
    trainer.add_hook(lambda ctx: ctx.metrics.update(val_loss=next(values)), name="m", on="epoch_end", stage="evaluate")

    with caplog.at_level(logging.WARNING):
        trainer.train(blobs())

    assert "alert after epoch 3: val_loss rose to 2, above 1.08" in caplog.text
    with StatsReader(tmp_path / "stats.sqlite") as reader:
        events = [(each["who"], each["what"], each["why"], each["epoch"]) for each in reader.events("mine")]
        points = reader.metric("mine", "alert/loss_spike")
    assert events == [("alert", "alert", "val_loss rose to 2, above 1.08", 3)]
    assert [(point.epoch, point.value) for point in points] == [(3, 1.0)]


@pytest.mark.parametrize("after", [1, 8, 12, 20])
def test_a_run_with_these_hooks_resumes_as_if_it_had_never_stopped(after: int) -> None:
    def hooks() -> list[object]:
        return [ConfidenceHook(), DriftHook(batches=4), AlertHook(loss_spike=1e-6, accuracy_drop=1e-6)]

    rows = Rows(after)
    whole = make_trainer(*hooks(), rows, learning_rate=0.5)
    whole.train(blobs(), blobs())
    again = Rows()
    resumed = make_trainer(*hooks(), again, learning_rate=0.5)
    resumed.load_state_dict(rows.state)
    resumed.train(blobs(), blobs())

    assert again.rows == rows.rows
    assert any("alert/loss_spike" in row for row in rows.rows)
    for one, other in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_looking_does_not_change_training() -> None:
    plain, watched = make_trainer(), make_trainer(ConfidenceHook(), DriftHook(), AlertHook())

    one, other = plain.train(blobs(), blobs()), watched.train(blobs(), blobs())

    assert one.metrics_summary == other.metrics_summary
    for a, b in zip(plain.model.parameters(), watched.model.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("make_hook", [AlertHook, DriftHook, ConfidenceHook])
def test_the_hooks_are_observers(make_hook: Any) -> None:
    assert_pure(make_hook())
    assert_resumable(make_hook())


@pytest.mark.parametrize(
    ("make_hook", "options", "why"),
    [
        (DriftHook, {"warning": 0.3}, "warning=0.3, alert=0.2"),
        (DriftHook, {"batches": 0}, "batches must be at least 1, got 0"),
        (ConfidenceHook, {"answers": True}, "answers must be at least 1, got True"),
        (AlertHook, {"gradient_norm": -1}, "gradient_norm must be more than 0, got -1"),
    ],
)
def test_options_that_mean_nothing_are_refused(make_hook: Any, options: dict[str, Any], why: str) -> None:
    with pytest.raises(RegistrationError, match=why):
        make_hook(**options)
