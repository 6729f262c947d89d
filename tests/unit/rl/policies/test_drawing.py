"""Quick draws follow the same rule as the head's own, from memory that is used again."""

from __future__ import annotations

import copy

import pytest
import torch

from hookloop.rl.actions import FEW_CHOICES, Categorical, MaskError, NoLegalActionError, action_head
from hookloop.rl.policies.drawing import ChoiceDraws, GaussianDraws, ManyChoiceDraws, draws_for
from hookloop.rl.specs import ContinuousActions, DiscreteActions, MultiDiscreteActions
from tests.unit.rl.policies.examples import BOX, randn, stream


def test_draws_equal_those_of_the_head_from_the_same_stream() -> None:
    logits = randn(5_000, 6) * 2

    actions, log_probs = ChoiceDraws(6).draw(logits, None, stream(4))
    head_actions, head_log_probs = Categorical(6).sample(logits, None, stream(4))

    # Sums are rounded differently, which moves a choice about once in a million.
    assert (actions == head_actions).float().mean() > 0.999
    same = actions == head_actions
    torch.testing.assert_close(log_probs[same], head_log_probs[same])


@pytest.mark.parametrize("num_choices", [1, 2, 7])
def test_log_probs_are_those_of_the_drawn_choices(num_choices: int) -> None:
    logits = randn(50, num_choices) * 3

    actions, log_probs = ChoiceDraws(num_choices).draw(logits, None, stream())

    torch.testing.assert_close(log_probs, Categorical(num_choices).evaluate(logits, actions)[0])


def test_illegal_choices_are_never_drawn_however_much_they_are_wanted() -> None:
    logits = torch.zeros(10_000, 8)
    mask = torch.zeros(10_000, 8, dtype=torch.bool)
    mask[:, 2:5] = True
    logits[~mask] = 30.0

    actions, log_probs = ChoiceDraws(8).draw(logits, mask, stream())

    assert set(actions.tolist()) == {2, 3, 4}
    torch.testing.assert_close(log_probs, torch.full((10_000,), 1 / 3).log())


def test_frequencies_pass_a_chi_square_test() -> None:
    logits = torch.tensor([[0.0, 1.0, -1.0, 0.5]]).expand(40_000, 4)

    actions, _ = ChoiceDraws(4).draw(logits, None, stream())

    expected = torch.softmax(logits[0], 0) * 40_000
    counts = torch.bincount(actions, minlength=4)
    # 16.3 is the 99.9 % point for three degrees of freedom.
    assert float(((counts - expected).square() / expected).sum()) < 16.3


def test_logits_are_left_as_they_are_and_extremes_are_survived() -> None:
    logits = torch.tensor([[1e30, 0.0, -1e30], [-1e30, -1e30, -1e30]])
    before = logits.clone()

    actions, log_probs = ChoiceDraws(3).draw(logits, None, stream())

    assert torch.equal(logits, before)
    assert actions[0] == 0
    torch.testing.assert_close(log_probs, torch.tensor([0.0, -torch.tensor(3.0).log().item()]))


def test_the_next_draw_of_as_many_rows_overwrites_the_last() -> None:
    draws = ChoiceDraws(3)
    generator = stream()
    first, _ = draws.draw(randn(5, 3), None, generator)
    kept = first.data_ptr()

    other, _ = draws.draw(randn(6, 3), None, generator)
    again, _ = draws.draw(randn(5, 3, seed=2), None, generator)

    assert again.data_ptr() == kept != other.data_ptr()


def test_memory_is_bounded_and_not_copied_with_the_draws() -> None:
    draws = ChoiceDraws(3)
    for rows in range(1, 60):
        draws.draw(randn(rows, 3), None, stream())

    copied = copy.deepcopy(draws)

    assert torch.equal(copied.draw(randn(4, 3), None, stream())[0], draws.draw(randn(4, 3), None, stream())[0])


def test_gaussian_draws_have_the_moments_and_log_probs_they_were_given() -> None:
    spec = ContinuousActions((2, 1), (-1.0, -1.0), (1.0, 1.0))
    parameters = torch.tensor([[1.0, -2.0, -0.7, 1.1]]).expand(50_000, 4)

    actions, log_probs = GaussianDraws(spec.shape).draw(parameters, None, stream())

    assert actions.shape == (50_000, 2, 1)
    torch.testing.assert_close(actions.mean(0).flatten(), torch.tensor([1.0, -2.0]), atol=0.05, rtol=0)
    torch.testing.assert_close(actions.std(0).log().flatten(), torch.tensor([-0.7, 1.1]), atol=0.02, rtol=0)
    torch.testing.assert_close(log_probs, action_head(spec).evaluate(parameters, actions)[0], rtol=1e-4, atol=1e-4)


def test_gaussian_draws_follow_the_stream_and_refuse_a_mask() -> None:
    draws, parameters = GaussianDraws((3,)), randn(5, 6)

    first = draws.draw(parameters, None, stream(1))[0].clone()
    again = copy.deepcopy(draws).draw(parameters, None, stream(1))[0].clone()
    other = draws.draw(parameters, None, stream(2))[0].clone()

    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    with pytest.raises(MaskError, match="no mask"):
        draws.draw(parameters, torch.ones(5, 6, dtype=torch.bool), stream())


def sparse_mask(num_rows: int, num_choices: int, seed: int = 0) -> torch.Tensor:
    mask = torch.rand(num_rows, num_choices, generator=stream(seed)) < 0.02
    mask[torch.arange(num_rows), torch.arange(num_rows) % num_choices] = True
    return mask


def test_draws_among_many_choices_equal_those_of_the_head_from_the_same_stream() -> None:
    logits, mask = randn(2_000, 700) * 2, sparse_mask(2_000, 700)
    head = Categorical(700)

    actions, log_probs = ManyChoiceDraws(head).draw(logits, mask, stream(4))
    head_actions, head_log_probs = head.sample(logits, mask, stream(4))

    same = actions == head_actions
    assert same.float().mean() > 0.999
    torch.testing.assert_close(log_probs[same], head_log_probs[same])
    torch.testing.assert_close(log_probs, head.evaluate(logits, actions, mask)[0])


def test_none_of_many_illegal_choices_is_drawn_and_a_row_does_not_depend_on_the_others() -> None:
    logits, mask = randn(300, 90), sparse_mask(300, 90)
    mask[7], mask[8] = True, False
    mask[8, 89] = True
    logits[~mask] = 1e30
    draws = ManyChoiceDraws(Categorical(90))
    actions, log_probs = (drawn.clone() for drawn in draws.draw(logits, mask, stream()))

    assert mask[torch.arange(300), actions].all()
    assert (actions[8], log_probs[8]) == (89, 0.0)
    logits[0] = torch.nan
    damaged, damaged_log_probs = draws.draw(logits, mask, stream())
    assert torch.equal(damaged[1:], actions[1:])
    assert torch.equal(damaged_log_probs[1:], log_probs[1:])
    assert mask[0, damaged[0]], "an error elsewhere, and still a legal choice"


def test_many_choices_without_a_mask_are_drawn_by_the_head_and_a_row_without_a_legal_one_is_refused() -> None:
    logits, head = randn(5, 40), Categorical(40)
    draws = copy.deepcopy(ManyChoiceDraws(head))

    assert torch.equal(draws.draw(logits, None, stream())[0], head.sample(logits, None, stream())[0])
    with pytest.raises(NoLegalActionError, match=r"Rows \[0, 1, 2, 3, 4\]"):
        draws.draw(logits, torch.zeros(5, 40, dtype=torch.bool), stream())


def test_one_choice_and_real_numbers_are_drawn_quickly() -> None:
    assert isinstance(draws_for(action_head(DiscreteActions(FEW_CHOICES))), ChoiceDraws)
    assert isinstance(draws_for(action_head(DiscreteActions(FEW_CHOICES + 1))), ManyChoiceDraws)
    assert draws_for(action_head(MultiDiscreteActions((2, 2)))) is None
    assert draws_for(action_head(BOX)) is not None
