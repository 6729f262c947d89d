"""A policy with memory is the same step by step and over whole sequences, episodes beginning wherever they do."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from hookloop.errors import ConfigError
from hookloop.rl.policies import NetworkOutputError, Policy, RecurrentActorCritic, VectorEncoder, make_policy
from hookloop.rl.policies.cells import Cell, GruCell, LstmCell
from hookloop.rl.specs import ArraySpec, DiscreteActions
from tests.unit.rl.policies.examples import BOX, TWO, VECTOR, randn, stream

STEPS, ENVS = 9, 5


def some_starts() -> Tensor:
    starts = torch.rand(STEPS, ENVS, generator=stream(2)) < 0.25
    starts[0] = torch.tensor([True, True, False, False, True])
    return starts


@pytest.mark.parametrize("memory", ["gru", "lstm"])
@pytest.mark.parametrize("action_spec", [TWO, BOX, DiscreteActions(40)], ids=str)
def test_a_sequence_is_evaluated_as_it_was_acted_step_by_step(memory, action_spec) -> None:
    policy = make_policy(VECTOR, action_spec, memory=memory, seed=3)
    obs, starts, generator = randn(STEPS, ENVS, 4), some_starts(), stream()
    first_state = randn(*policy.initial_state(ENVS).shape, seed=5)
    state, actions, log_probs, values = first_state, [], [], []
    for step in range(STEPS):
        acted = policy.act(obs[step], state=state, starts=starts[step], generator=generator)
        state = acted.state
        actions.append(acted.actions.clone())
        log_probs.append(acted.log_probs.clone())
        values.append(acted.values.clone())

    evaluated = policy.evaluate(obs, torch.stack(actions), state=first_state, starts=starts)

    assert evaluated.log_probs.shape == (STEPS * ENVS,)
    torch.testing.assert_close(evaluated.log_probs, torch.cat(log_probs), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(evaluated.values, torch.cat(values), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("memory", ["gru", "lstm"])
def test_memory_emptied_by_the_caller_equals_a_start_that_is_told(memory) -> None:
    policy = make_policy(VECTOR, TWO, memory=memory)
    obs, starts = randn(ENVS, 4), some_starts()[0]
    state = randn(*policy.initial_state(ENVS).shape)

    told = policy.act(obs, state=state, starts=starts, generator=stream())
    told_values = told.values.clone()
    emptied = policy.act(obs, state=state * ~starts[:, None], generator=stream())

    torch.testing.assert_close(told_values, emptied.values)
    torch.testing.assert_close(policy.value(obs, state, starts), emptied.values)


@pytest.mark.parametrize("memory", ["gru", "lstm"])
def test_nothing_before_a_start_reaches_what_comes_after(memory) -> None:
    policy = make_policy(VECTOR, TWO, memory=memory)
    obs = randn(4, 1, 4).requires_grad_()
    starts = torch.tensor([[False], [False], [True], [False]])

    evaluated = policy.evaluate(obs, torch.zeros(4, dtype=torch.int64), state=policy.initial_state(1), starts=starts)
    evaluated.values[3].backward()

    assert obs.grad is not None
    assert torch.all(obs.grad[:2] == 0)
    assert torch.all(obs.grad[2:].abs().sum(-1) > 0)


@pytest.mark.parametrize(("ours", "theirs"), [(GruCell, nn.GRU), (LstmCell, nn.LSTM)])
def test_without_starts_a_cell_equals_the_one_of_torch(ours: type[Cell], theirs) -> None:
    cell = ours(3, 6, stream())
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=stream(6)))
    reference = theirs(3, 6)
    reference.load_state_dict(
        {
            "weight_ih_l0": cell.from_input.weight,
            "weight_hh_l0": cell.from_memory.weight,
            "bias_ih_l0": cell.from_input.bias,
            "bias_hh_l0": cell.from_memory.bias,
        }
    )
    inputs, state = randn(STEPS, ENVS, 3), randn(ENVS, cell.num_remembered, seed=2)
    parts = [part[None].contiguous() for part in state.split(6, 1)]

    outputs, last = cell(inputs, state, torch.zeros(STEPS, ENVS, dtype=torch.bool))
    expected, expected_last = reference(inputs, tuple(parts) if len(parts) > 1 else parts[0])

    torch.testing.assert_close(outputs, expected, rtol=1e-5, atol=1e-5)
    joined = torch.cat(expected_last, 2) if isinstance(expected_last, tuple) else expected_last
    torch.testing.assert_close(last, joined[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [GruCell, LstmCell])
def test_the_handwritten_gradient_of_a_sequence_passes_gradcheck(kind: type[Cell]) -> None:
    cell = kind(3, 2, stream()).double()
    starts = torch.tensor([[True, False], [False, False], [False, True], [False, False]])
    inputs = randn(4, 2, 3).double().requires_grad_()
    state = randn(2, cell.num_remembered, seed=2).double().requires_grad_()
    names = [name for name, _ in cell.named_parameters()]
    weights = tuple(parameter.detach().clone().requires_grad_() for parameter in cell.parameters())

    def unroll(given: Tensor, memory: Tensor, *replaced: Tensor) -> tuple[Tensor, ...]:
        return torch.func.functional_call(cell, dict(zip(names, replaced, strict=True)), (given, memory, starts))

    assert torch.autograd.gradcheck(unroll, (inputs, state, *weights))


def test_masks_of_a_sequence_may_keep_its_axes() -> None:
    policy = make_policy(VECTOR, DiscreteActions(6), memory="gru")
    obs, mask = randn(STEPS, ENVS, 4), torch.rand(STEPS, ENVS, 6, generator=stream()) < 0.5
    mask[..., 2] = True
    actions = torch.full((STEPS * ENVS,), 2)

    evaluated = policy.evaluate(obs, actions, mask=mask, state=policy.initial_state(ENVS), starts=some_starts())
    evaluated.log_probs.sum().backward()

    assert torch.isfinite(evaluated.log_probs).all()


@pytest.mark.parametrize(("memory", "width"), [("gru", 24), ("lstm", 48)])
def test_the_memory_is_described_and_kept_per_segment_not_per_step(memory, width: int) -> None:
    policy = make_policy(VECTOR, TWO, hidden=(16, 24), memory=memory)

    assert policy.state_spec == ArraySpec((width,), "float32")
    assert policy.experience_spec() == {"starts": ArraySpec((), "bool")}
    assert torch.equal(policy.initial_state(3), torch.zeros(3, width))


def test_a_cell_stands_over_any_encoder() -> None:
    encoder = VectorEncoder(VECTOR.array, hidden=(7,), activation="relu", generator=stream())
    network = RecurrentActorCritic(VECTOR, TWO, cell="lstm", num_units=11, encoder=encoder)

    parameters, values, state = network(randn(2, 3, 4), network.initial_state(3), torch.zeros(2, 3, dtype=torch.bool))

    assert parameters.shape == (2, 3, 2)
    assert values.shape == (2, 3)
    assert state.shape == (3, 22)


class TwoPartMemory(nn.Module):
    """A user's network whose memory is a tuple."""

    is_recurrent = True

    def initial_state(self, num_envs: int) -> tuple[Tensor, Tensor]:
        return torch.zeros(num_envs, 2), torch.zeros(num_envs, 3, 3)

    def forward(self, obs: Tensor, state: tuple[Tensor, Tensor], starts: Tensor) -> tuple[Tensor, Tensor, object]:
        total = obs.cumsum(0)
        return total[..., :2], total[..., :1], (state[0] + 1, state[1])


def test_a_memory_may_be_a_tuple_of_tensors() -> None:
    policy = Policy(TwoPartMemory(), TWO, VECTOR)

    acted = policy.act(randn(4, 4), generator=stream())
    evaluated = policy.evaluate(randn(2, 4, 4), torch.zeros(8, dtype=torch.int64))

    assert policy.state_spec == (ArraySpec((2,), "float32"), ArraySpec((3, 3), "float32"))
    assert isinstance(acted.state, tuple)
    assert evaluated.values.shape == (8,)


class Forgetful(TwoPartMemory):
    def forward(self, obs: Tensor, state: object, starts: Tensor) -> object:  # type: ignore[override]
        return obs[..., :2], obs[..., 0]


def test_a_recurrent_network_that_returns_no_memory_is_told_so() -> None:
    with pytest.raises(NetworkOutputError, match=r"\(parameters, values, state\), got a tuple of 2"):
        Policy(Forgetful(), TWO, VECTOR).act(randn(4, 4), generator=stream())


def test_a_policy_with_memory_has_no_forward_pass_without_it() -> None:
    with pytest.raises(ConfigError, match="call unroll"):
        make_policy(VECTOR, TWO, memory="gru").forward(randn(2, 4))


def test_an_unknown_cell_is_refused() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'gru'"):
        RecurrentActorCritic(VECTOR, TWO, cell="gur")  # type: ignore[arg-type]
