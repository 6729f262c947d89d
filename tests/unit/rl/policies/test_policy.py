"""What every policy does, whatever its network: act, evaluate, value, and say what is wrong."""

from __future__ import annotations

import copy
import textwrap
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from hookloop.errors import ConfigError
from hookloop.rl import policies
from hookloop.rl.actions import NoLegalActionError
from hookloop.rl.policies import (
    EncodedActorCritic,
    MlpActorCritic,
    NetworkOutputError,
    Policy,
    VectorEncoder,
    make_policy,
)
from hookloop.rl.specs import (
    ActionSpec,
    ArraySpec,
    ContinuousActions,
    DiscreteActions,
    MultiDiscreteActions,
    ObservationSpec,
)
from tests.unit.rl.policies.examples import BOX, TWO, VECTOR, OwnNetwork, randn, stream

SPECS: list[ActionSpec] = [TWO, DiscreteActions(40), MultiDiscreteActions((3, 2)), BOX]


def networks(action_spec: ActionSpec) -> list[nn.Module]:
    return [
        MlpActorCritic(VECTOR, action_spec, generator=stream()),
        EncodedActorCritic(VectorEncoder(VECTOR.array, generator=stream()), action_spec, generator=stream()),
    ]


@pytest.mark.parametrize("action_spec", SPECS, ids=str)
@pytest.mark.parametrize("which", [0, 1])
def test_evaluation_gives_the_log_probs_and_values_that_acting_gave(action_spec: ActionSpec, which: int) -> None:
    policy = Policy(networks(action_spec)[which], action_spec, VECTOR)
    obs = randn(50, 4)

    acted = policy.act(obs, generator=stream())
    evaluated = policy.evaluate(obs, acted.actions)

    torch.testing.assert_close(evaluated.log_probs, acted.log_probs, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(evaluated.values, acted.values, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(policy.value(obs), acted.values, rtol=1e-5, atol=1e-5)
    assert acted.state is None
    assert acted.actions.shape == (50, *action_spec.shape)
    assert acted.actions.dtype == getattr(torch, action_spec.dtype)
    assert evaluated.entropy.shape == evaluated.log_probs.shape == (50,)
    assert evaluated.parameters.shape == (50, policy.head.num_parameters)


@pytest.mark.parametrize("action_spec", SPECS, ids=str)
def test_equal_streams_act_equally(action_spec: ActionSpec) -> None:
    policy = Policy(networks(action_spec)[0], action_spec, VECTOR)
    obs = randn(64, 4)

    first = policy.act(obs, generator=stream(1)).actions.clone()
    again = policy.act(obs, generator=stream(1)).actions.clone()
    other = policy.act(obs, generator=stream(2)).actions.clone()

    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("action_spec", SPECS, ids=str)
def test_a_greedy_policy_takes_the_mode_and_leaves_the_stream_alone(action_spec: ActionSpec) -> None:
    policy = Policy(networks(action_spec)[0], action_spec, VECTOR)
    obs, generator = randn(20, 4), stream()
    before = generator.get_state()

    acted = policy.act(obs, generator=generator, greedy=True)

    assert torch.equal(generator.get_state(), before)
    torch.testing.assert_close(acted.actions, policy.head.mode(policy.forward(obs)[0]))
    torch.testing.assert_close(acted.log_probs, policy.evaluate(obs, acted.actions).log_probs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("num_choices", [6, 40])
def test_masks_are_kept_when_acting_and_when_evaluating(which: int, num_choices: int) -> None:
    action_spec = DiscreteActions(num_choices)
    policy = Policy(networks(action_spec)[which], action_spec, VECTOR)
    obs = randn(2_000, 4)
    mask = torch.rand(2_000, num_choices, generator=stream(5)) < 0.3
    mask[:, 3] = True

    for greedy in (False, True):
        acted = policy.act(obs, mask=mask, generator=stream(), greedy=greedy)
        assert mask[torch.arange(2_000), acted.actions].all()
        scored = policy.evaluate(obs, acted.actions, mask=mask)
        torch.testing.assert_close(scored.log_probs, acted.log_probs, rtol=1e-4, atol=1e-5)


def test_a_row_without_a_legal_action_is_named_when_masks_are_checked() -> None:
    policy = make_policy(VECTOR, TWO, check_masks=True)
    mask = torch.tensor([[True, False], [False, False]])

    with pytest.raises(NoLegalActionError, match=r"Rows \[1\]"):
        policy.act(randn(2, 4), mask=mask, generator=stream())
    with pytest.raises(NoLegalActionError, match=r"Rows \[1\]"):
        policy.evaluate(randn(2, 4), torch.tensor([0, 0]), mask=mask)


def test_a_policy_of_your_own_is_one_line() -> None:
    policy = Policy(OwnNetwork(), TWO, VECTOR)

    acted = policy.act(randn(3, 4), generator=stream())
    evaluated = policy.evaluate(randn(3, 4), acted.actions)
    (evaluated.log_probs.sum() + evaluated.values.sum()).backward()

    assert acted.values.shape == evaluated.values.shape == (3,)
    assert all(parameter.grad is not None for parameter in policy.parameters())
    assert not policy.can_backpropagate
    with pytest.raises(ConfigError, match="OwnNetwork does not know its own gradient"):
        policy.evaluate_by_hand(randn(3, 4), acted.actions)


def test_the_example_in_the_documentation_of_the_package_runs() -> None:
    _, _, rest = (policies.__doc__ or "").partition("::\n")
    names: dict[str, Any] = {"nn": nn, "Tensor": Tensor, "Policy": Policy}
    names |= {"DiscreteActions": DiscreteActions, "ObservationSpec": ObservationSpec, "ArraySpec": ArraySpec}

    exec(textwrap.dedent(rest[: rest.index("\nA network with memory")]), names)

    assert names["policy"].act(randn(3, 4), generator=stream()).actions.shape == (3,)


def test_the_next_act_overwrites_the_last_but_a_value_does_not() -> None:
    policy = make_policy(VECTOR, TWO)
    acted = policy.act(randn(5, 4), generator=stream())
    values = acted.values.clone()

    policy.value(randn(5, 4, seed=2))
    assert torch.equal(acted.values, values)

    policy.act(randn(5, 4, seed=2), generator=stream())
    assert not torch.equal(acted.values, values)


def test_what_was_acted_can_be_written_into_buffers_and_used_in_a_loss() -> None:
    for network in (OwnNetwork(), MlpActorCritic(VECTOR, TWO)):
        policy = Policy(network, TWO, VECTOR)
        buffer = torch.zeros(2, 5)

        acted = policy.act(randn(5, 4), generator=stream())
        buffer[0].copy_(acted.log_probs)
        buffer.numpy()[1] = acted.values.numpy()
        evaluated = policy.evaluate(randn(5, 4), acted.actions.clone())
        (evaluated.log_probs * policy.value(randn(5, 4))).sum().backward()

        assert torch.equal(buffer[0], acted.log_probs)


def test_acting_works_inside_inference_mode_and_outside_of_it_in_any_order() -> None:
    policy = make_policy(VECTOR, TWO)
    obs = randn(4, 4)

    with torch.inference_mode():
        inside = policy.act(obs, generator=stream()).actions.clone()
    outside = policy.act(obs, generator=stream()).actions.clone()
    policy.evaluate(obs, outside).log_probs.sum().backward()

    assert torch.equal(inside, outside)


def test_a_copy_of_a_policy_acts_like_the_original_and_learns_alone() -> None:
    policy = make_policy(VECTOR, TWO, seed=1)
    obs = randn(6, 4)
    expected = policy.act(obs, generator=stream()).log_probs.clone()

    copied = copy.deepcopy(policy)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(1)
    policy.act(obs, generator=stream())

    torch.testing.assert_close(copied.act(obs, generator=stream()).log_probs, expected)


def test_the_state_dict_names_every_weight_once_and_restores_the_policy() -> None:
    policy, other = make_policy(VECTOR, BOX, seed=1), make_policy(VECTOR, BOX, seed=2)

    assert all(name.startswith("network.") for name in policy.state_dict())
    other.load_state_dict(policy.state_dict())

    torch.testing.assert_close(other.value(randn(3, 4)), policy.value(randn(3, 4)))


def test_a_policy_without_memory_says_so() -> None:
    policy = make_policy(VECTOR, TWO)

    assert not policy.is_recurrent
    assert policy.state_spec is None
    assert policy.experience_spec() == {}
    with pytest.raises(ConfigError, match="has no memory"):
        policy.initial_state(4)


class Wrong(nn.Module):
    def __init__(self, returned: object) -> None:
        super().__init__()
        self.returned = returned

    def forward(self, obs: Tensor) -> object:
        return self.returned


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (torch.zeros(3, 2), r"Wrong\.forward must return \(parameters, values\), got float32 \[3, 2\]"),
        ((torch.zeros(3, 2),), r"got a tuple of 1"),
        ((torch.zeros(3, 5), torch.zeros(3)), r"\[3, 2\] for DiscreteActions\(n=2\), got float32 \[3, 5\]"),
        ((torch.zeros(3, 2), torch.zeros(3, 2)), r"values of shape \[3\] or \[3, 1\], got float32 \[3, 2\]"),
        ((torch.zeros(3, 2), 0.5), r"values of shape .* got a float"),
        ((torch.zeros(3, 2, dtype=torch.int64), torch.zeros(3)), r"floating point numbers, got int64 \[3, 2\]"),
    ],
)
def test_a_network_that_returns_the_wrong_thing_is_told_what_was_expected(returned: object, words: str) -> None:
    policy = Policy(Wrong(returned), TWO, VECTOR)

    with pytest.raises(NetworkOutputError, match=words):
        policy.act(randn(3, 4), generator=stream())


def test_a_network_made_for_other_actions_is_refused_at_once() -> None:
    with pytest.raises(NetworkOutputError, match=r"made for 2 action parameters, but DiscreteActions\(n=5\) has 5"):
        Policy(MlpActorCritic(VECTOR, TWO), DiscreteActions(5), VECTOR)


def test_continuous_policies_start_with_deviations_of_one() -> None:
    policy = make_policy(VECTOR, ContinuousActions((2,), (-1.0, -1.0), (1.0, 1.0)))

    parameters, _ = policy.forward(randn(3, 4))

    assert torch.equal(parameters[:, 2:], torch.zeros(3, 2))
