"""Losses of sequences against plain arithmetic, one number at a time."""

from __future__ import annotations

import math
from statistics import mean, stdev

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from hookloop.core.state import TrainerState
from hookloop.errors import ConfigError
from hookloop.sequences.experience import SequenceMinibatch, Sequences, token_log_probs
from hookloop.sequences.losses import GRPO, RLOO, Imitation, SequenceLoss
from tests.unit.sequences.models import small_model

PROMPT = [2, 3]
REWARDS = [[1.0, 0.0, 0.5], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.0, 2.0, 0.0]]
LENGTHS = [3, 1, 4, 2, 2, 2, 1, 4, 3, 4, 1, 2]
STATE = TrainerState()

rewards_of_a_group = st.lists(st.floats(-5, 5).map(lambda x: round(x, 3)), min_size=2, max_size=6)


def experience(rewards: list[list[float]] = REWARDS, *, shift: float = 0.0) -> Sequences:
    """Return drawn rows, whose log-probabilities at drawing time were other ones than now, by ``shift``."""
    rows, group = len(rewards) * len(rewards[0]), len(rewards[0])
    random = torch.Generator().manual_seed(4)
    tokens = torch.cat([torch.tensor([PROMPT] * rows), torch.randint(2, 7, (rows, 4), generator=random)], dim=1)
    lengths = torch.tensor((LENGTHS * rows)[:rows])[:, None]
    places = torch.arange(6)
    mask = ((places >= 2) & (places < 2 + lengths)).float()
    with torch.no_grad():
        now = token_log_probs(small_model(), tokens, mask)
    noise = torch.randn(now.shape, generator=random) * shift
    examples, known = tokens[::group].clone(), mask[::group].clone()
    known[-1] = 0  # the lesson of the last group knows no answers
    return Sequences(tokens, (now + noise) * mask, mask, torch.tensor(rewards), examples, known, (now - noise) * mask)


def minibatch(sequences: Sequences, loss: SequenceLoss, groups: list[int] | None = None) -> SequenceMinibatch:
    chosen = torch.tensor(list(range(len(sequences.rewards))) if groups is None else groups)
    drawn = chosen[loss.groups(sequences)[chosen]]
    advantages = {loss.name: loss.advantages(sequences.rewards)}
    return SequenceMinibatch(small_model(), sequences, chosen, drawn, advantages)


def drawn_symbols(values: Tensor, mask: Tensor, row: int) -> list[float]:
    return [value for value, is_drawn in zip(values[row].tolist(), mask[row].tolist(), strict=True) if is_drawn]


@given(rewards=rewards_of_a_group)
def test_leave_one_out_takes_the_mean_of_the_others_away(rewards: list[float]) -> None:
    found = RLOO().advantages(torch.tensor([rewards], dtype=torch.float64))[0].tolist()

    expected = [reward - mean(rewards[:k] + rewards[k + 1 :]) for k, reward in enumerate(rewards)]
    assert found == pytest.approx(expected, abs=1e-9)


@given(rewards=rewards_of_a_group)
def test_group_advantages_have_mean_0_and_deviation_1(rewards: list[float]) -> None:
    found = GRPO().advantages(torch.tensor([rewards], dtype=torch.float64))[0].tolist()

    expected = [(reward - mean(rewards)) / (stdev(rewards) + 1e-6) for reward in rewards]
    assert found == pytest.approx(expected, abs=1e-6)


def test_rloo_is_advantage_times_log_probability_of_whole_completions() -> None:
    loss, sequences = RLOO(skip_equal_groups=False), experience()

    found = loss.train(minibatch(sequences, loss), STATE)

    total = 0.0
    for row in range(12):
        group, k = divmod(row, 3)
        advantage = REWARDS[group][k] - mean(REWARDS[group][:k] + REWARDS[group][k + 1 :])
        total -= advantage * sum(drawn_symbols(sequences_now(sequences), sequences.mask, row))
    assert found.item() == pytest.approx(total / 12, abs=1e-5)


def sequences_now(sequences: Sequences) -> Tensor:
    with torch.no_grad():
        return token_log_probs(small_model(), sequences.tokens, sequences.mask)


def plain_grpo(sequences: Sequences, *, clip: float, kl: float, groups: list[int]) -> float:
    now = sequences_now(sequences)
    assert sequences.reference is not None
    total = 0.0
    for group in groups:
        rewards = sequences.rewards[group].tolist()
        for k, reward in enumerate(rewards):
            row = 3 * group + k
            advantage = (reward - mean(rewards)) / (stdev(rewards) + 1e-6)
            symbols = zip(
                drawn_symbols(now, sequences.mask, row),
                drawn_symbols(sequences.log_probs, sequences.mask, row),
                drawn_symbols(sequences.reference, sequences.mask, row),
                strict=True,
            )
            each: list[float] = []
            for new, old, reference in symbols:
                ratio = math.exp(new - old)
                surrogate = min(ratio * advantage, min(max(ratio, 1 - clip), 1 + clip) * advantage)
                distance = math.exp(reference - new) - (reference - new) - 1
                each.append(-surrogate + kl * distance)
            total += mean(each)
    return total / (3 * len(groups))


@pytest.mark.parametrize("kl", [0.0, 0.3])
@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_grpo_is_the_mean_over_completions_of_the_mean_over_their_symbols(kl: float, shift: float) -> None:
    loss, sequences = GRPO(clip=0.2, kl_coefficient=kl, skip_equal_groups=False), experience(shift=shift)

    found = loss.train(minibatch(sequences, loss), STATE)

    assert found.item() == pytest.approx(plain_grpo(sequences, clip=0.2, kl=kl, groups=[0, 1, 2, 3]), abs=1e-5)
    if shift:
        assert loss.statistics.means()["clip_fraction"] > 0


def test_prompts_and_padding_have_no_gradient_and_no_say() -> None:
    loss, sequences = GRPO(kl_coefficient=0.1, skip_equal_groups=False), experience(shift=0.3)
    before = loss.train(minibatch(sequences, loss), STATE)

    sequences.log_probs = torch.where(sequences.mask == 1, sequences.log_probs, torch.tensor(-3.0)) * sequences.mask
    beyond = (torch.arange(6) >= 2) & (sequences.mask == 0)
    sequences.tokens = torch.where(beyond, torch.tensor(6), sequences.tokens)  # other symbols after the end

    assert torch.equal(loss.train(minibatch(sequences, loss), STATE), before)


def test_groups_whose_rewards_are_alike_are_left_out() -> None:
    loss, sequences = GRPO(), experience(shift=0.2)

    batch = minibatch(sequences, loss, [0, 3])

    assert loss.groups(sequences).tolist() == [True, False, False, True]
    assert batch.rows.tolist() == [0, 1, 2, 9, 10, 11]
    assert loss.train(batch, STATE).item() == pytest.approx(
        plain_grpo(sequences, clip=0.2, kl=0.0, groups=[0, 3]), abs=1e-5
    )


def test_a_minibatch_without_anything_drawn_costs_nothing() -> None:
    loss, sequences = RLOO(), experience()

    found = loss.train(minibatch(sequences, loss, [1, 2]), STATE)

    assert found.item() == 0
    assert not found.requires_grad


def test_imitation_learns_the_answers_that_nobody_found() -> None:
    loss, sequences = Imitation(coefficient=2.0), experience()
    assert sequences.example_tokens is not None
    assert sequences.example_mask is not None

    found = loss.train(minibatch(sequences, loss, [0, 2]), STATE)

    assert loss.groups(sequences).tolist() == [False, False, True, False]
    with torch.no_grad():
        now = token_log_probs(small_model(), sequences.example_tokens, sequences.example_mask)
    expected = 2.0 * -mean(drawn_symbols(now, sequences.example_mask, 2)) / 2
    assert found.item() == pytest.approx(expected, abs=1e-5)


def test_imitation_of_everything_leaves_out_only_what_has_no_answer() -> None:
    sequences = experience()

    assert Imitation(only_failed=False).groups(sequences).tolist() == [True, True, True, False]


@settings(max_examples=20, deadline=None)
@given(step=st.floats(0.01, 0.05))
def test_a_step_along_the_gradient_makes_better_completions_likelier(step: float) -> None:
    model, sequences = small_model(), experience()
    loss = RLOO()
    chosen = torch.tensor([0, 3])
    batch = SequenceMinibatch(model, sequences, chosen, chosen, {"rloo": loss.advantages(sequences.rewards)})

    before = loss.train(batch, STATE)
    before.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            assert parameter.grad is not None
            parameter -= step / 10 * parameter.grad
    batch = SequenceMinibatch(model, sequences, chosen, chosen, batch.advantages)

    assert loss.train(batch, STATE) < before


def test_a_loss_takes_part_when_its_schedule_says_so() -> None:
    loss, sequences = GRPO(train_schedule="from 3 epochs"), experience()
    state = TrainerState()

    assert loss.train(minibatch(sequences, loss), state).item() == 0
    state.clocks.epochs = 3
    assert loss.train(minibatch(sequences, loss), state).item() != 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GRPO(clip=0), "clip must be above 0, got 0"),
        (lambda: GRPO(kl_coefficient=-1), "got -1"),
        (lambda: Imitation(coefficient=-1), "got -1"),
    ],
)
def test_settings_that_mean_nothing_are_refused(make: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()  # type: ignore[operator]  # each is a function
