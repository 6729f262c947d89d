"""The accumulator and the monitor: what happens between a loss and a step."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import nn

from hookloop.core import HookContext
from hookloop.errors import NonFiniteError
from hookloop.supervised import GradientAccumulator, GradientMonitor, Trainer, TrainingConfig
from hookloop.supervised.learning_rates import make_factor


def make_accumulator(**options: object) -> tuple[nn.Linear, GradientAccumulator]:
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    return model, GradientAccumulator(model, torch.optim.SGD(model.parameters(), lr=0.1), **options)  # type: ignore[arg-type]


def test_it_steps_when_the_window_is_full_and_at_the_last_batch() -> None:
    model, accumulator = make_accumulator(accumulation_steps=3)

    stepped = [accumulator.accumulate(model(torch.ones(2, 3)).mean(), is_last=n == 4) for n in range(5)]

    assert stepped == [False, False, True, False, True]
    assert (accumulator.steps, accumulator.waiting) == (2, 0)


def test_a_window_whose_end_nobody_knew_is_the_mean_of_what_it_holds() -> None:
    model, accumulator = make_accumulator(accumulation_steps=4)
    before = model.weight.detach().clone()

    accumulator.accumulate(model(torch.ones(2, 3)).mean())
    accumulator.finish()

    torch.testing.assert_close(model.weight.detach(), before - 0.1)
    assert not accumulator.finish()


def test_gradients_are_clipped_to_the_norm_and_the_norm_before_is_reported() -> None:
    model, accumulator = make_accumulator(max_grad_norm=0.5)
    before = model.weight.detach().clone(), model.bias.detach().clone()

    accumulator.accumulate(model(torch.ones(2, 3)).mean())

    moved = torch.cat([(before[0] - model.weight).flatten(), before[1] - model.bias]).norm().item()
    assert moved == pytest.approx(0.05, rel=1e-4)
    assert accumulator.norms.mean() == pytest.approx(2.0)


def test_waiting_gradients_are_saved_sparse_ones_too() -> None:
    torch.manual_seed(0)
    table = nn.Embedding(5, 2, sparse=True)
    accumulator = GradientAccumulator(table, torch.optim.SGD(table.parameters(), lr=0.1), accumulation_steps=2)
    accumulator.accumulate(table(torch.tensor([1, 1, 3])).sum())
    saved = copy.deepcopy(accumulator.state_dict())
    other = nn.Embedding(5, 2, sparse=True)
    other.load_state_dict(table.state_dict())
    resumed = GradientAccumulator(other, torch.optim.SGD(other.parameters(), lr=0.1), accumulation_steps=2)
    resumed.load_state_dict(saved)

    for each, model in ((accumulator, table), (resumed, other)):
        assert each.accumulate(model(torch.tensor([2])).sum())

    assert torch.equal(table.weight, other.weight)


def train(losses: list[float], *, halt_after: int = 3) -> tuple[nn.Module, list[torch.Tensor]]:
    """Train a weight with losses that are finite or not, and return the weights after each batch."""
    model = nn.Linear(1, 1)
    seen: list[torch.Tensor] = []
    config = TrainingConfig(batch_size=1, epochs=1, shuffle=False, halt_after_bad_gradients=halt_after)
    trainer = Trainer(model, training_config=config, loss=lambda out, target: (out * target).mean())
    trainer.add_hook(lambda model: seen.append(model.weight.detach().clone()), name="seen", on="minibatch_end")
    trainer.train((torch.ones(len(losses), 1), torch.tensor(losses)[:, None]))
    return model, seen


def test_nan_gradients_are_blocked_before_the_step() -> None:
    _, seen = train([1.0, math.nan, math.inf, 1.0])

    assert all(bool(weight.isfinite().all()) for weight in seen)
    assert torch.equal(seen[0], seen[1])
    assert torch.equal(seen[1], seen[2])
    assert not torch.equal(seen[2], seen[3])


def test_three_bad_steps_in_a_row_end_the_run_and_name_the_layers() -> None:
    with pytest.raises(NonFiniteError, match=r"3 times in a row after 1 optimizer steps: NaN in weight, bias"):
        train([1.0, math.nan, math.nan, math.nan])


def test_a_good_step_between_bad_ones_counts_from_anew() -> None:
    train([math.nan, math.nan, 1.0, math.nan, math.nan])


def test_the_health_of_gradients_is_told_by_layer() -> None:
    model = nn.Sequential(*(nn.Linear(1, 1, bias=False) for _ in range(5)))
    for layer, value in zip(model, (1.0, math.nan, math.inf, 1e-9, 100.0), strict=True):
        layer.weight.grad = torch.full((1, 1), value)

    health = GradientMonitor().check(model)

    assert (health.nan, health.infinite) == (("1.weight",), ("2.weight",))
    assert (health.vanishing, health.exploding) == (("3.weight",), ("4.weight",))
    assert str(health).startswith("NaN in 1.weight; infinite in 2.weight")


def test_exploding_and_vanishing_steps_are_counted_and_reported() -> None:
    model, monitor = nn.Linear(1, 1, bias=False), GradientMonitor(inspect_every=3)
    context = HookContext(model=model)
    reports = []
    for value in (100.0, 1e-9, 1.0):
        model.weight.grad = torch.full((1, 1), value)
        reports.append(monitor.on_gradients(context))

    assert reports[:2] == [None, None]
    assert reports[2] is not None
    assert (reports[2]["exploding_steps"], reports[2]["vanishing_steps"]) == (1, 1)
    assert not context.state.skip_optimizer_step


@pytest.mark.parametrize("schedule", ["linear", "cosine", "wsd", "constant"])
def test_learning_rates_rise_to_one_and_end_where_they_should(schedule: str) -> None:
    config = TrainingConfig(lr_schedule=schedule, warmup_steps=10, min_lr_ratio=0.1)
    factor = make_factor(config, 100)
    assert factor is not None

    assert [factor(step) for step in range(10)] == [(step + 1) / 10 for step in range(10)]
    assert factor(10) == 1.0
    assert factor(100) == (1.0 if schedule == "constant" else pytest.approx(0.1))
    assert factor(79) == (1.0 if schedule in ("wsd", "constant") else pytest.approx(factor(79)))
    assert all(factor(step) >= factor(step + 1) for step in range(10, 100))


def test_a_schedule_without_an_end_is_refused() -> None:
    with pytest.raises(ValueError, match="set max_steps"):
        make_factor(TrainingConfig(lr_schedule="cosine"), None)
