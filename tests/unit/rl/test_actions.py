"""Action heads agree with torch.distributions, keep to their masks, and draw what they say they draw."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.distributions import Categorical as TorchCategorical
from torch.distributions import Independent, Normal, kl_divergence

from hookloop.rl.actions import (
    ActionHead,
    Categorical,
    DiagonalGaussian,
    MaskError,
    MultiCategorical,
    NoLegalActionError,
    action_head,
    draw_by_race,
)
from hookloop.rl.specs import ActionSpec, ContinuousActions, DiscreteActions, MultiDiscreteActions

ROWS = 7
BOX = ContinuousActions((2, 2), (-1.0,) * 4, (1.0,) * 4)
SPECS: list[ActionSpec] = [DiscreteActions(5), DiscreteActions(40), MultiDiscreteActions((3, 2, 4)), BOX]


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random_parameters(head: ActionHead, *, rows: int = ROWS, seed: int = 0, scale: float = 1.0) -> Tensor:
    return torch.randn(rows, head.num_parameters, generator=stream(seed), dtype=torch.float64) * scale


def random_mask(width: int, *, rows: int = ROWS, seed: int = 3) -> Tensor:
    mask = torch.rand(rows, width, generator=stream(seed)) < 0.5
    mask[torch.arange(rows), torch.randint(0, width, (rows,), generator=stream(seed + 1))] = True
    return mask


def theirs(spec: ActionSpec, parameters: Tensor, mask: Tensor | None = None) -> list[TorchCategorical] | Independent:
    if isinstance(spec, ContinuousActions):
        means, log_deviations = parameters.split(math.prod(spec.shape), 1)
        normal = Normal(means.view(-1, *spec.shape), log_deviations.exp().view(-1, *spec.shape))
        return Independent(normal, len(spec.shape))
    sizes = (spec.n,) if isinstance(spec, DiscreteActions) else spec.nvec
    logits = parameters if mask is None else parameters.masked_fill(~mask, -1e30)
    return [TorchCategorical(logits=part) for part in logits.split(sizes, 1)]


def their_scores(
    spec: ActionSpec, parameters: Tensor, actions: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    found = theirs(spec, parameters, mask)
    if isinstance(found, Independent):
        return found.log_prob(actions), found.entropy()
    columns = actions.view(len(actions), -1).unbind(1)
    log_probs = [part.log_prob(chosen) for part, chosen in zip(found, columns, strict=True)]
    return torch.stack(log_probs).sum(0), torch.stack([part.entropy() for part in found]).sum(0)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_scores_and_their_gradients_agree_with_torch_distributions(spec: ActionSpec) -> None:
    head = action_head(spec)
    ours = random_parameters(head).requires_grad_()
    other = ours.detach().clone().requires_grad_()
    actions, _ = head.sample(ours, None, stream())
    weights = torch.randn(2, ROWS, generator=stream(9), dtype=torch.float64)

    log_probs, entropy = head.evaluate(ours, actions)
    (log_probs * weights[0] + entropy * weights[1]).sum().backward()
    their_log_probs, their_entropy = their_scores(spec, other, actions)
    (their_log_probs * weights[0] + their_entropy * weights[1]).sum().backward()

    torch.testing.assert_close(log_probs, their_log_probs)
    torch.testing.assert_close(entropy, their_entropy)
    torch.testing.assert_close(ours.grad, other.grad)


@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize("transposed", [False, True])
def test_the_handwritten_gradient_passes_gradcheck(spec: ActionSpec, transposed: bool) -> None:
    head = action_head(spec)
    parameters = random_parameters(head)
    actions, _ = head.sample(parameters, None, stream())
    leaf = (parameters.t().contiguous() if transposed else parameters).requires_grad_()

    def score(given: Tensor) -> tuple[Tensor, Tensor]:
        return head.evaluate(given.t() if transposed else given, actions)

    assert torch.autograd.gradcheck(score, (leaf,))


@pytest.mark.parametrize("spec", SPECS[:3], ids=str)
def test_the_handwritten_gradient_passes_gradcheck_under_a_mask(spec: ActionSpec) -> None:
    head = action_head(spec)
    parameters = random_parameters(head).requires_grad_()
    mask = torch.cat([random_mask(size) for size in getattr(spec, "nvec", (head.num_parameters,))], 1)
    actions, _ = head.sample(parameters, mask, stream())

    assert torch.autograd.gradcheck(lambda given: head.evaluate(given, actions, mask), (parameters,))


@pytest.mark.parametrize("which", [0, 1])
def test_either_half_of_a_score_can_be_differentiated_alone(which: int) -> None:
    head = Categorical(4)
    ours = random_parameters(head).requires_grad_()
    other = ours.detach().clone().requires_grad_()
    actions = torch.arange(ROWS) % 4

    head.evaluate(ours, actions)[which].sum().backward()
    their_scores(DiscreteActions(4), other, actions)[which].sum().backward()

    torch.testing.assert_close(ours.grad, other.grad)


@pytest.mark.parametrize("num_choices", [6, 50])
def test_masked_scores_agree_with_torch_distributions_on_the_legal_choices(num_choices: int) -> None:
    spec, head = DiscreteActions(num_choices), Categorical(num_choices)
    parameters, mask = random_parameters(head), random_mask(num_choices)
    actions, _ = head.sample(parameters, mask, stream())

    log_probs, entropy = head.evaluate(parameters, actions, mask)
    their_log_probs, their_entropy = their_scores(spec, parameters, actions, mask)

    torch.testing.assert_close(log_probs, their_log_probs)
    torch.testing.assert_close(entropy, their_entropy)


@pytest.mark.parametrize("num_choices", [6, 50])
def test_illegal_choices_have_a_gradient_of_exactly_zero(num_choices: int) -> None:
    head = Categorical(num_choices)
    parameters, mask = random_parameters(head, scale=5).requires_grad_(), random_mask(num_choices)
    actions, _ = head.sample(parameters, mask, stream())

    log_probs, entropy = head.evaluate(parameters, actions, mask)
    (3 * log_probs.sum() - entropy.sum()).backward()

    assert parameters.grad is not None
    assert torch.all(parameters.grad[~mask] == 0)
    assert torch.all(torch.isfinite(parameters.grad))
    assert torch.any(parameters.grad[mask] != 0)


def test_an_illegal_action_scores_minus_infinity_and_has_no_gradient_of_its_own() -> None:
    head = Categorical(3)
    parameters = torch.zeros(1, 3, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True, True, False]])

    log_probs, entropy = head.evaluate(parameters, torch.tensor([2]), mask)
    (log_probs + entropy).sum().backward()

    assert log_probs.item() == -math.inf
    assert parameters.grad is not None
    assert parameters.grad[0, 2] == 0


@pytest.mark.parametrize("num_choices", [8, 64])
def test_illegal_choices_are_never_drawn_in_ten_thousand_draws(num_choices: int) -> None:
    head = Categorical(num_choices)
    # The illegal choices are the ones the network wants most, and lie at both ends.
    logits = torch.zeros(10_000, num_choices)
    mask = torch.zeros(10_000, num_choices, dtype=torch.bool)
    mask[:, 2:-3] = True
    logits[~mask] = 30.0

    actions, log_probs = head.sample(logits, mask, stream())

    assert mask[torch.arange(10_000), actions].all()
    assert torch.isfinite(log_probs).all()
    assert torch.isin(torch.arange(2, num_choices - 3), actions).all()


def test_the_exponential_race_of_other_devices_keeps_to_the_mask_and_the_frequencies() -> None:
    probs = torch.tensor([0.0, 0.5, 0.2, 0.3, 0.0]).expand(20_000, 5)

    counts = torch.bincount(draw_by_race(probs, stream()).squeeze(1), minlength=5)

    assert counts[0] == counts[4] == 0
    torch.testing.assert_close(counts / 20_000, probs[0], atol=0.015, rtol=0)


def chi_square(counts: Tensor, probs: Tensor) -> float:
    expected = probs * counts.sum()
    return float(((counts - expected).square() / expected).sum())


def test_frequencies_of_draws_pass_a_chi_square_test() -> None:
    head = Categorical(6)
    logits = torch.tensor([[0.0, 1.0, -1.0, 0.5, 2.0, -2.0]]).expand(60_000, 6)

    actions, log_probs = head.sample(logits, None, stream())

    # 20.5 is the 99.9 % point for five degrees of freedom.
    assert chi_square(torch.bincount(actions, minlength=6), torch.softmax(logits[0], 0)) < 20.5
    torch.testing.assert_close(log_probs, torch.log_softmax(logits, 1).gather(1, actions[:, None])[:, 0])


def test_gaussian_draws_have_the_mean_and_deviation_they_were_given() -> None:
    head = DiagonalGaussian(ContinuousActions((2,), (-1.0, -1.0), (1.0, 1.0)))
    parameters = torch.tensor([[1.0, -2.0, math.log(0.5), math.log(3.0)]]).expand(50_000, 4)

    actions, log_probs = head.sample(parameters, None, stream())

    torch.testing.assert_close(actions.mean(0), torch.tensor([1.0, -2.0]), atol=0.05, rtol=0)
    torch.testing.assert_close(actions.std(0), torch.tensor([0.5, 3.0]), atol=0.05, rtol=0)
    torch.testing.assert_close(log_probs, head.evaluate(parameters, actions)[0])


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_equal_seeds_draw_equal_actions_and_other_seeds_do_not(spec: ActionSpec) -> None:
    head = action_head(spec)
    parameters = random_parameters(head, rows=64).float()

    first, first_log_probs = head.sample(parameters, None, stream(5))
    again, again_log_probs = head.sample(parameters, None, stream(5))
    other, _ = head.sample(parameters, None, stream(6))

    assert torch.equal(first, again)
    assert torch.equal(first_log_probs, again_log_probs)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_actions_have_the_shape_and_dtype_of_the_spec(spec: ActionSpec) -> None:
    head = action_head(spec)
    parameters = random_parameters(head).float()

    for actions in (head.sample(parameters, None, stream())[0], head.mode(parameters)):
        assert actions.shape == (ROWS, *spec.shape)
        assert actions.dtype == getattr(torch, spec.dtype) == head.action_dtype


def test_the_mode_is_the_likeliest_legal_choice() -> None:
    logits = torch.tensor([[1.0, 3.0, 2.0, 0.0, 5.0, 4.0]])
    mask = torch.tensor([[True, False, True, True, False, True]])

    assert Categorical(6).mode(logits).tolist() == [4]
    assert Categorical(6).mode(logits, mask).tolist() == [5]
    assert MultiCategorical((3, 3)).mode(logits, mask).tolist() == [[2, 2]]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_divergence_agrees_with_torch_distributions(spec: ActionSpec) -> None:
    head = action_head(spec)
    first, second = random_parameters(head, seed=1), random_parameters(head, seed=2).requires_grad_()

    found = head.divergence(first, second)
    found.sum().backward()

    p, q = theirs(spec, first), theirs(spec, second.detach())
    if isinstance(p, Independent):
        assert isinstance(q, Independent)
        expected = kl_divergence(p, q)
    else:
        assert isinstance(q, list)
        expected = torch.stack([kl_divergence(*pair) for pair in zip(p, q, strict=True)]).sum(0)
    torch.testing.assert_close(found, expected)
    assert second.grad is not None
    assert second.grad.abs().sum() > 0


def test_a_masked_divergence_has_finite_gradients() -> None:
    head = Categorical(6)
    first, second, mask = random_parameters(head, seed=1), random_parameters(head, seed=2), random_mask(6)
    second.requires_grad_()

    found = head.divergence(first, second, mask)
    found.sum().backward()

    assert torch.isfinite(found).all()
    assert second.grad is not None
    assert torch.isfinite(second.grad).all()
    assert torch.all(second.grad[~mask] == 0)


def test_a_row_without_a_legal_action_is_named_by_the_check() -> None:
    mask = torch.ones(4, 3, dtype=torch.bool)
    mask[2] = False

    with pytest.raises(NoLegalActionError, match=r"Rows \[2\].*1 of 4"):
        Categorical(3).check_mask(mask)


def test_each_of_several_choices_needs_a_legal_option() -> None:
    mask = torch.tensor([[True, False, False, False]])

    with pytest.raises(NoLegalActionError):
        MultiCategorical((2, 2)).check_mask(mask)


def test_a_mask_of_the_wrong_width_or_dtype_is_refused() -> None:
    with pytest.raises(MaskError, match=r"\[rows, 3\].*\[4, 2\]"):
        Categorical(3).check_mask(torch.ones(4, 2, dtype=torch.bool))
    with pytest.raises(MaskError, match="float32"):
        Categorical(3).check_mask(torch.ones(4, 3))


def test_continuous_actions_refuse_a_mask() -> None:
    head = action_head(BOX)

    with pytest.raises(MaskError, match="no mask"):
        head.sample(torch.zeros(1, 8), torch.ones(1, 8, dtype=torch.bool), stream())
