"""The stacked network equals two plain ones: values, gradients, and any loss on top."""

from __future__ import annotations

import copy
import gc
import pickle

import pytest
import torch
from torch import Tensor, nn

from hookloop.errors import ConfigError
from hookloop.rl.optimizer import FlatAdam
from hookloop.rl.policies import MlpActorCritic, Policy
from hookloop.rl.specs import ActionSpec, ArraySpec, ContinuousActions, ObservationSpec
from tests.unit.rl.policies.examples import BOX, TWO, VECTOR, Plain, randn, stream

SHAPES = [
    ((64, 64), "tanh", False, TWO),
    ((16,), "relu", False, TWO),
    ((8, 12, 6), "tanh", True, TWO),
    ((16, 16), "tanh", False, BOX),
    ((16, 16), "relu", True, BOX),
]


def make(hidden, activation, shared, action_spec: ActionSpec, *, seed: int = 0) -> MlpActorCritic:
    network = MlpActorCritic(
        VECTOR, action_spec, hidden=hidden, activation=activation, shared=shared, generator=stream(seed)
    )
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=stream(7)) * 0.3)
    return network


class Evaluating(nn.Module):
    """An evaluation as a module, so that its weights can be replaced from outside."""

    def __init__(self, policy: Policy, actions: Tensor) -> None:
        super().__init__()
        self.policy, self.actions = policy, actions

    def forward(self, obs: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.policy.evaluate(obs, self.actions))


def random_actions(action_spec: ActionSpec, rows: int) -> Tensor:
    if isinstance(action_spec, ContinuousActions):
        return randn(rows, *action_spec.shape, seed=4)
    return torch.randint(0, 2, (rows,), generator=stream(4))


def gradients_by_layer(network: MlpActorCritic) -> dict[str, Tensor]:
    return {
        name: parameter.grad.clone() for name, parameter in network.named_parameters() if parameter.grad is not None
    }


def assert_same_gradients(network: MlpActorCritic, plain: Plain, *, shared: bool, **tolerance: float) -> None:
    for k, layer in enumerate(network.hidden):
        theirs = [chain[2 * k].get_parameter("weight").grad for chain in (plain.actor, plain.critic)]
        expected = torch.stack([grad.t() for grad in theirs if grad is not None])
        expected = expected.sum(0, keepdim=True) if shared else expected
        torch.testing.assert_close(layer.get_parameter("weight").grad, expected, **tolerance)
        theirs = [chain[2 * k].get_parameter("bias").grad for chain in (plain.actor, plain.critic)]
        expected = torch.stack([grad[None] for grad in theirs if grad is not None])
        expected = expected.sum(0, keepdim=True) if shared else expected
        torch.testing.assert_close(layer.get_parameter("bias").grad, expected, **tolerance)
    for ours, theirs in ((network.actor, plain.actor[-1]), (network.critic, plain.critic[-1])):
        torch.testing.assert_close(ours.weight.grad, theirs.get_parameter("weight").grad, **tolerance)
        torch.testing.assert_close(ours.bias.grad, theirs.get_parameter("bias").grad, **tolerance)
    if network.log_deviations is not None:
        assert plain.log_deviations is not None
        torch.testing.assert_close(network.log_deviations.grad, plain.log_deviations.grad, **tolerance)


@pytest.mark.parametrize(("hidden", "activation", "shared", "action_spec"), SHAPES)
def test_outputs_and_gradients_equal_the_plain_network_in_double_precision(
    hidden, activation, shared, action_spec
) -> None:
    network = make(hidden, activation, shared, action_spec).double()
    plain = Plain(network, activation)
    obs = randn(9, 4).double()

    for net in (network, plain):
        parameters, values = net(obs)
        (parameters.square().sum() + (values.flatten() * parameters[:, 0]).sum()).backward()

    torch.testing.assert_close(network(obs)[0], plain(obs)[0], rtol=0, atol=1e-12)
    torch.testing.assert_close(network(obs)[1], plain(obs)[1].squeeze(1), rtol=0, atol=1e-12)
    assert_same_gradients(network, plain, shared=shared, rtol=1e-12, atol=1e-12)


def test_outputs_and_gradients_equal_the_plain_network_in_single_precision() -> None:
    network = make((64, 64), "tanh", False, TWO)
    plain = Plain(network, "tanh")
    obs = randn(256, 4)

    for net in (network, plain):
        parameters, values = net(obs)
        (parameters.square().mean() + values.square().mean()).backward()

    torch.testing.assert_close(network(obs)[0], plain(obs)[0], rtol=0, atol=2e-6)
    assert_same_gradients(network, plain, shared=False, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("hidden", "activation", "shared", "action_spec"), [SHAPES[2], SHAPES[3]])
def test_the_whole_evaluation_passes_gradcheck(hidden, activation, shared, action_spec) -> None:
    policy = Policy(make(hidden, activation, shared, action_spec).double(), action_spec, VECTOR)
    obs, actions = randn(3, 4).double().requires_grad_(), random_actions(action_spec, 3).double()
    evaluating = Evaluating(policy, actions)
    names = [name for name, _ in evaluating.named_parameters()]
    weights = tuple(parameter.detach().clone().requires_grad_() for parameter in policy.parameters())

    def evaluate(given: Tensor, *replaced: Tensor) -> tuple[Tensor, ...]:
        return torch.func.functional_call(evaluating, dict(zip(names, replaced, strict=True)), (given,))

    assert torch.autograd.gradcheck(evaluate, (obs, *weights))


@pytest.mark.parametrize(("hidden", "activation", "shared", "action_spec"), SHAPES)
def test_evaluation_by_hand_gives_the_gradients_of_autograd(hidden, activation, shared, action_spec) -> None:
    policy = Policy(network := make(hidden, activation, shared, action_spec), action_spec, VECTOR)
    obs, actions = randn(32, 4), random_actions(action_spec, 32)
    weights = randn(3, 32, seed=8)

    evaluated = policy.evaluate(obs, actions)
    torch.autograd.backward((evaluated.log_probs, evaluated.entropy, evaluated.values), tuple(weights))
    expected = gradients_by_layer(network)
    scored = policy.evaluate_by_hand(obs, actions)
    for name in ("log_probs", "entropy", "values", "parameters"):
        torch.testing.assert_close(getattr(scored, name), getattr(evaluated, name))
    given = {"log_probs_grad": weights[0], "entropy_grad": weights[1], "values_grad": weights[2]}

    scored.backpropagate(**given)
    torch.testing.assert_close(gradients_by_layer(network), expected)
    scored.backpropagate(**given, accumulate=True)
    torch.testing.assert_close(gradients_by_layer(network), {name: 2 * grad for name, grad in expected.items()})
    network.zero_grad(set_to_none=True)
    scored.backpropagate(**given)
    torch.testing.assert_close(gradients_by_layer(network), expected)


@pytest.mark.parametrize("part", ["log_probs", "entropy", "values", "parameters"])
def test_a_loss_on_one_result_alone_has_the_gradient_of_the_plain_network(part: str) -> None:
    network = make((16, 16), "tanh", False, TWO)
    plain = Plain(network, "tanh")
    obs, actions = randn(12, 4), random_actions(TWO, 12)

    getattr(Policy(network, TWO, VECTOR).evaluate(obs, actions), part).square().sum().backward()
    getattr(Policy(plain, TWO, VECTOR).evaluate(obs, actions), part).square().sum().backward()

    for k in (0, 2):
        ours = network.hidden[k // 2].get_parameter("weight").grad
        assert ours is not None
        for which, chain in enumerate((plain.actor, plain.critic)):
            theirs = chain[k].get_parameter("weight").grad
            expected = torch.zeros_like(ours[which]) if theirs is None else theirs.t()
            torch.testing.assert_close(ours[which], expected, rtol=1e-5, atol=1e-5)


def test_two_evaluations_before_one_backward_do_not_disturb_each_other() -> None:
    policy = Policy(network := make((16, 16), "tanh", False, TWO), TWO, VECTOR)
    batches = [(randn(8, 4, seed=seed), random_actions(TWO, 8)) for seed in (1, 2)]
    expected: list[dict[str, Tensor]] = []
    for obs, actions in batches:
        network.zero_grad(set_to_none=True)
        policy.evaluate(obs, actions).log_probs.sum().backward()
        expected.append(gradients_by_layer(network))
    network.zero_grad(set_to_none=True)

    losses = [policy.evaluate(obs, actions).log_probs.sum() for obs, actions in batches]
    losses[0].backward()
    losses[1].backward()

    both = {name: expected[0][name] + expected[1][name] for name in expected[0]}
    torch.testing.assert_close(gradients_by_layer(network), both)


def test_results_survive_the_graph_they_came_from() -> None:
    policy = Policy(make((16, 16), "tanh", False, TWO), TWO, VECTOR)
    evaluated = policy.evaluate(randn(8, 4), random_actions(TWO, 8))
    kept = evaluated.values.detach()
    before = kept.clone()
    del evaluated
    gc.collect()

    policy.evaluate(randn(8, 4, seed=2), random_actions(TWO, 8)).values.sum().backward()

    assert torch.equal(kept, before)


def test_memory_of_a_graph_is_freed_without_the_garbage_collector() -> None:
    policy = Policy(network := make((16, 16), "tanh", False, TWO), TWO, VECTOR)
    obs, actions = randn(8, 4), random_actions(TWO, 8)
    gc.disable()
    try:
        pointers = set()
        for _ in range(5):
            trace = network.trace(obs)
            pointers.add(trace.memory.values.data_ptr())
            del trace
            policy.evaluate(obs, actions).log_probs.sum().backward()
        assert len(pointers) == 1
    finally:
        gc.enable()


def test_a_weight_changed_between_forward_and_backward_is_noticed() -> None:
    policy = Policy(network := make((16, 16), "tanh", False, TWO), TWO, VECTOR)
    loss = policy.evaluate(randn(8, 4), random_actions(TWO, 8)).log_probs.sum()

    with torch.no_grad():
        network.actor.weight.mul_(2)

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("rows", [1, 8, 64, 300])
@pytest.mark.parametrize(("hidden", "activation", "shared", "action_spec"), SHAPES)
def test_inference_equals_the_forward_pass_for_few_and_many_rows(rows, hidden, activation, shared, action_spec) -> None:
    network = make(hidden, activation, shared, action_spec)
    obs = randn(rows, 4)

    parameters, values = network.infer(obs)

    with torch.no_grad():
        expected_parameters, expected_values = network(obs)
    torch.testing.assert_close(parameters, expected_parameters, rtol=1e-5, atol=2e-6)
    torch.testing.assert_close(values, expected_values, rtol=1e-5, atol=2e-6)


def move_into_one_buffer(network: MlpActorCritic) -> None:
    FlatAdam(network)


def put_other_parameters_in_place(network: MlpActorCritic) -> None:
    network.actor.weight = torch.nn.Parameter(torch.ones_like(network.actor.weight))


def load_other_weights(network: MlpActorCritic) -> None:
    network.load_state_dict(make((16, 16), "tanh", False, TWO, seed=5).state_dict())


def change_weights_in_place(network: MlpActorCritic) -> None:
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(1.5)


def pass_through_double(network: MlpActorCritic) -> None:
    network.double().infer(randn(3, 4))
    network.float()


@pytest.mark.parametrize(
    "change",
    [
        move_into_one_buffer,
        put_other_parameters_in_place,
        load_other_weights,
        change_weights_in_place,
        pass_through_double,
    ],
)
def test_inference_follows_its_weights_wherever_they_go(change) -> None:
    network = make((16, 16), "tanh", False, TWO)
    obs = randn(3, 4)
    network.infer(obs)

    change(network)
    if change is move_into_one_buffer:
        change_weights_in_place(network)

    with torch.no_grad():
        torch.testing.assert_close(network.infer(obs)[0], network(obs)[0])


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda network: pickle.loads(pickle.dumps(network))])
def test_a_copy_shares_neither_weights_nor_memory(duplicate) -> None:
    network = make((16, 16), "tanh", False, TWO)
    obs = randn(3, 4)
    before = network.infer(obs)[0].clone()

    copied = duplicate(network)
    change_weights_in_place(copied)
    held = network.infer(obs)[0]
    other = copied.infer(obs)[0]

    assert torch.equal(held, before)
    assert not torch.equal(other, before)


def test_observations_of_any_shape_and_dtype_are_flattened_and_converted() -> None:
    spec = ObservationSpec.single(ArraySpec((2, 3), "int64"))
    network = MlpActorCritic(spec, TWO, hidden=(8,), generator=stream())
    obs = torch.arange(12).view(2, 2, 3)

    parameters, values = network(obs)

    assert parameters.shape == (2, 2)
    torch.testing.assert_close(parameters, network(obs.view(2, 6).float())[0])
    torch.testing.assert_close(values, network.infer(obs)[1])


def test_first_weights_are_orthogonal_and_follow_the_generator() -> None:
    network = MlpActorCritic(VECTOR, TWO, generator=stream(3))

    for which in (0, 1):
        weight = network.hidden[1].get_parameter("weight")[which]
        torch.testing.assert_close(weight.t() @ weight, 2 * torch.eye(64), rtol=0, atol=1e-5)
    product = network.actor.weight @ network.actor.weight.t()
    torch.testing.assert_close(product, 1e-4 * torch.eye(2), rtol=0, atol=1e-9)
    assert network.critic.weight.norm().item() == pytest.approx(1.0, abs=1e-5)
    assert all(torch.all(value == 0) for name, value in network.named_parameters() if name.endswith("bias"))
    again = MlpActorCritic(VECTOR, TWO, generator=stream(3))
    assert all(torch.equal(a, b) for a, b in zip(network.parameters(), again.parameters(), strict=True))


def test_names_in_the_state_dict_say_what_they_hold() -> None:
    network = MlpActorCritic(VECTOR, BOX, hidden=(8, 6))

    assert {name: list(tensor.shape) for name, tensor in network.state_dict().items()} == {
        "log_deviations": [3],
        "hidden.0.weight": [2, 4, 8],
        "hidden.0.bias": [2, 1, 8],
        "hidden.1.weight": [2, 8, 6],
        "hidden.1.bias": [2, 1, 6],
        "actor.weight": [3, 6],
        "actor.bias": [3],
        "critic.weight": [1, 6],
        "critic.bias": [1],
    }


def test_layers_that_make_no_network_are_refused() -> None:
    with pytest.raises(ConfigError, match="at least one hidden layer"):
        MlpActorCritic(VECTOR, TWO, hidden=())
    with pytest.raises(ConfigError, match="Did you mean 'tanh'"):
        MlpActorCritic(VECTOR, TWO, activation="tanhh")  # type: ignore[arg-type]
