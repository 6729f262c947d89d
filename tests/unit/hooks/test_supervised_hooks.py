"""Early stopping, averaged weights, the best weights, the search for a learning rate, and advice on memory."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hookloop.errors import RegistrationError, UnknownNameError
from hookloop.hooks import (
    BestWeightsHook,
    CheckpointFolderHook,
    EarlyStoppingHook,
    EmaHook,
    LearningRates,
    MemoryAdviceHook,
    find_learning_rate,
)
from hookloop.supervised import Trainer, TrainingConfig
from hookloop.testing import Harness, assert_pure, assert_resumable


def line() -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.linspace(-1, 1, 40)[:, None]
    return x, 3 * x - 1


def make_trainer(*hooks: object, **settings: Any) -> Trainer:
    torch.manual_seed(0)
    given = {"learning_rate": 0.05, "batch_size": 10, "epochs": 4, "optimizer": "sgd", **settings}
    return Trainer(nn.Linear(1, 1), training_config=TrainingConfig(**given), hooks=list(hooks))


def stops_after(values: list[float], **options: Any) -> int | None:
    """Return the epoch after which a run with these metrics is asked to stop."""
    harness = Harness(EarlyStoppingHook(**options))
    for epoch, value in enumerate(values, 1):
        harness.epoch(metrics={"val_loss": value})
        if harness.state.stop is not None:
            return epoch
    return None


@pytest.mark.parametrize(
    ("values", "options", "epoch"),
    [
        ([3, 2, 2, 2, 2], {"patience": 2}, 4),
        ([3, 2, 2, 1, 1, 1], {"patience": 3}, None),
        ([3, 2.95, 2.9, 2.85], {"patience": 2, "min_delta": 0.2}, 3),
        ([1, 2, 3, 2, 2], {"patience": 2, "mode": "max"}, 5),
        ([math.nan, math.nan], {"patience": 2}, 2),
        ([1, math.nan, 0.5, 0.6], {"patience": 2}, None),
    ],
)
def test_a_run_stops_after_so_many_epochs_without_an_improvement(
    values: list[float], options: dict[str, Any], epoch: int | None
) -> None:
    assert stops_after(values, **options) == epoch


def test_early_stopping_names_the_metrics_there_are() -> None:
    with pytest.raises(UnknownNameError, match=r"metric 'val_los' to stop early by. Did you mean 'val_loss'"):
        make_trainer(EarlyStoppingHook(patience=1, metric="val_los")).train(line(), line())


@pytest.mark.parametrize("options", [{"patience": 0}, {"min_delta": -1}, {"mode": "less"}])
def test_early_stopping_refuses_what_means_nothing(options: dict[str, Any]) -> None:
    with pytest.raises(RegistrationError):
        EarlyStoppingHook(**options)


def test_early_stopping_resumes_exactly() -> None:
    assert_resumable(EarlyStoppingHook(patience=100, metric="loss"))
    assert_pure(EarlyStoppingHook(patience=100, metric="loss"))


def test_the_average_follows_the_weights_and_training_does_not_see_it() -> None:
    weights: list[torch.Tensor] = []
    ema = EmaHook(decay=0.9)
    plain, watched = make_trainer(), make_trainer(ema)
    average = watched.model.weight.detach().clone()
    watched.add_hook(lambda model: weights.append(model.weight.detach().clone()), name="w", on="optimizer_step")

    plain.train(line(), line())
    watched.train(line(), line())

    for weight in weights:
        average.lerp_(weight, 1 - 0.9)
    torch.testing.assert_close(ema.averages["weight"], average)
    assert torch.equal(plain.model.weight, watched.model.weight)
    assert plain.metrics_tracker.column("loss") == watched.metrics_tracker.column("loss")
    assert plain.metrics_tracker.column("val_loss") != watched.metrics_tracker.column("val_loss")
    with ema.applied(watched.model) as model:
        assert torch.equal(model.weight, ema.averages["weight"])
    assert torch.equal(plain.model.weight, watched.model.weight)


class _Saver:
    name = "saver"
    stage = "checkpoint"

    def __init__(self) -> None:
        self._saves: list[Any] = []

    def on_epoch_end(self, ctx: Any) -> None:
        self._saves.append(copy.deepcopy(ctx.loop.state_dict()))


@pytest.mark.parametrize("make_hook", [lambda: EmaHook(0.9), lambda: BestWeightsHook()], ids=["ema", "best"])
def test_hooks_that_keep_weights_resume_exactly(make_hook: Any) -> None:
    saver, first = _Saver(), make_hook()
    whole = make_trainer(first, saver)
    whole.train(line(), line())
    second = make_hook()
    resumed = make_trainer(second, _Saver())
    resumed.load_state_dict(saver._saves[1])

    resumed.train(line(), line())

    one, other = first.state_dict(), second.state_dict()
    for kept in ("averages", "weights"):
        for name, weight in one.pop(kept, {}).items():
            assert torch.equal(weight, other[kept][name])
    assert torch.equal(whole.model.weight, resumed.model.weight)


def test_the_best_weights_are_in_the_model_at_the_end() -> None:
    best, seen = BestWeightsHook("val_loss"), {}
    trainer = make_trainer(best, learning_rate=0.9, max_grad_norm=None, epochs=3)
    trainer.add_hook(lambda ctx: seen.update({ctx.state.epoch: ctx.model.weight.detach().clone()}), name="w",
                     on="epoch_end")  # fmt: skip
    trainer.add_hook(lambda ctx: ctx.metrics.update(val_loss=[5, 1, 3][ctx.state.epoch - 1]), name="m", on="epoch_end")

    trainer.train(line())

    assert best.epoch == 2
    assert torch.equal(trainer.model.weight, seen[2])


def test_a_learning_rate_is_found_and_nothing_is_left_of_the_search() -> None:
    trainer, untouched = make_trainer(batch_size=40), make_trainer(batch_size=40)
    random = torch.get_rng_state()

    found = find_learning_rate(trainer, line(), lowest=1e-4, highest=100.0, steps=60)

    assert found.suggestion is not None
    assert 1e-3 < found.suggestion < 10
    assert len(found.rates) == len(found.losses) > 10
    assert list(found.rates) == sorted(found.rates)
    assert torch.equal(random, torch.get_rng_state())
    assert trainer.train(line()).loss_history == untouched.train(line()).loss_history


def test_what_a_search_has_found_is_drawn_with_the_suggestion_marked(tmp_path: Path) -> None:
    found = LearningRates((1e-4, 1e-3, 1e-2), (1.0, 0.5, 0.75), 1e-3)

    found.plot(tmp_path / "rates.svg")

    picture = (tmp_path / "rates.svg").read_text()
    assert all(f"<!-- {words} -->" in picture for words in ("learning rate", "suggestion: 0.001"))
    assert "stroke-dasharray" in picture  # the line of the mark


def test_an_error_of_memory_comes_with_advice_and_others_do_not() -> None:
    def notes(error: Exception) -> list[str]:
        def fail() -> None:
            raise error

        trainer = make_trainer(MemoryAdviceHook(), batch_size=10, optimizer="adamw")
        trainer.add_hook(fail, name="fails", on="minibatch_start")
        with pytest.raises(type(error)):
            trainer.train(line())
        return getattr(error, "__notes__", [])

    advice = " ".join(notes(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes")))
    assert "batch_size=5, gradient_accumulation_steps=2" in advice
    assert "precision='bf16'" in advice
    assert notes(MemoryError())
    assert not any("memory" in note for note in notes(RuntimeError("shapes differ")))


def test_checkpoints_within_epochs_are_what_a_killed_run_goes_on_from(tmp_path: Any) -> None:
    class Kill(BaseException):
        """As if the process had ended here."""

    def die(ctx: Any) -> None:
        if ctx.state.clocks.minibatches == 7:
            raise Kill

    def build(folder: str) -> Trainer:
        settings = {"checkpoint_dir": str(tmp_path / folder), "save_every_steps": 1, "save_every_epochs": 100}
        return make_trainer(gradient_accumulation_steps=2, batch_size=5, **settings)

    whole = build("whole")
    whole.train(line())
    killed = build("killed")
    killed.add_hook(die, name="die", on="minibatch_end")
    with pytest.raises(Kill):
        killed.train(line())

    resumed = build("killed")
    result = resumed.train(line(), resume_from="latest")

    assert result.outcome == "completed"
    assert torch.equal(whole.model.weight, resumed.model.weight)
    assert resumed.metrics_tracker.rows == whole.metrics_tracker.rows


def test_a_folder_hook_refuses_intervals_that_mean_nothing(tmp_path: Any) -> None:
    with pytest.raises(RegistrationError, match="every_steps must be a whole number"):
        CheckpointFolderHook(tmp_path, every_steps=0)
