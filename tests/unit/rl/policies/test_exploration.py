"""Exploration that depends on the state: its arithmetic, how long noise is held, and what is refused."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal

from hookloop.errors import ConfigError
from hookloop.rl import StateDependentExploration
from hookloop.rl.actions import MaskError, StateDependentGaussian
from hookloop.rl.policies import (
    EncodedActorCritic,
    MlpActorCritic,
    Policy,
    RecurrentActorCritic,
    VectorEncoder,
    make_policy,
)
from hookloop.rl.specs import ArraySpec, ContinuousActions, MultiDiscreteActions, ObservationSpec
from tests.unit.rl.policies.examples import BOX, TWO, VECTOR, Plain, randn, stream

FOUR_STEPS = StateDependentExploration(resample_steps=4, initial_log_std=-0.5)
WHOLE_ROLLOUT = StateDependentExploration(initial_log_std=-0.5)
IMAGE = ObservationSpec.single(ArraySpec((3, 8, 8), "uint8"))
SQUARE = ContinuousActions((2, 2), (-1.0,) * 4, (1.0,) * 4)


def shaken(network: MlpActorCritic) -> MlpActorCritic:
    """Move all weights away from their beginnings, where many are equal."""
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=stream(7)) * 0.3)
    return network


def mlp(*, shared: bool = False, activation: str = "tanh", exploration=FOUR_STEPS) -> MlpActorCritic:
    return shaken(
        MlpActorCritic(
            VECTOR, BOX, hidden=(16, 12), activation=activation, shared=shared, exploration=exploration,
            generator=stream(),
        )
    )  # fmt: skip


def reference(network: MlpActorCritic, obs: Tensor, activation: str) -> tuple[Plain, Tensor, Tensor, Normal]:
    """Return plain chains of modules, the features, the log-deviations, and the actions' distribution."""
    plain = Plain(network, activation)
    assert plain.log_deviations is not None
    features = plain.actor[:-1](obs)
    variance = features.detach() ** 2 @ plain.log_deviations.exp() ** 2
    return plain, features, plain.log_deviations, Normal(plain.actor[-1](features), (variance + 1e-6).sqrt())


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_log_probs_and_entropy_are_those_of_a_normal_distribution(shared: bool, activation: str) -> None:
    network = mlp(shared=shared, activation=activation).double()
    obs, actions = randn(9, 4).double(), randn(9, 3, seed=2).double()

    evaluated = Policy(network, BOX, VECTOR).evaluate(obs, actions)

    *_, expected = reference(network, obs, activation)
    torch.testing.assert_close(evaluated.log_probs, expected.log_prob(actions).sum(1), rtol=0, atol=1e-10)
    torch.testing.assert_close(evaluated.entropy, expected.entropy().sum(1), rtol=0, atol=1e-10)


@pytest.mark.parametrize("shared", [False, True])
def test_gradients_are_those_of_plain_arithmetic_in_which_noise_does_not_shape_the_features(shared: bool) -> None:
    network = mlp(shared=shared).double()
    obs, actions, weights = randn(9, 4).double(), randn(9, 3, seed=2).double(), randn(2, 9, seed=3).double()

    evaluated = Policy(network, BOX, VECTOR).evaluate(obs, actions)
    (evaluated.log_probs * weights[0] + evaluated.entropy * weights[1]).sum().backward()

    plain, _, log_deviations, expected = reference(network, obs, "tanh")
    (expected.log_prob(actions).sum(1) * weights[0] + expected.entropy().sum(1) * weights[1]).sum().backward()
    assert network.log_deviations is not None
    torch.testing.assert_close(network.log_deviations.grad, log_deviations.grad, rtol=1e-10, atol=1e-12)
    first = plain.actor[0].get_parameter("weight").grad
    assert first is not None
    hidden_grad = network.hidden[0].get_parameter("weight").grad
    assert hidden_grad is not None
    torch.testing.assert_close(hidden_grad[0], first.t(), rtol=1e-10, atol=1e-12)


def test_evaluation_by_hand_gives_the_gradients_of_autograd() -> None:
    policy = Policy(network := mlp(), BOX, VECTOR)
    obs, actions, weights = randn(32, 4), randn(32, 3, seed=2), randn(3, 32, seed=8)

    evaluated = policy.evaluate(obs, actions)
    torch.autograd.backward((evaluated.log_probs, evaluated.entropy, evaluated.values), tuple(weights))
    expected = [parameter.grad for parameter in network.parameters()]
    network.zero_grad()
    scored = policy.evaluate_by_hand(obs, actions)
    scored.backpropagate(log_probs_grad=weights[0], entropy_grad=weights[1], values_grad=weights[2])

    torch.testing.assert_close([parameter.grad for parameter in network.parameters()], expected)


@pytest.mark.parametrize("cell", [None, "gru", "lstm"])
def test_every_encoder_puts_out_the_deviations_of_its_features(cell: str | None) -> None:
    encoder = VectorEncoder(VECTOR.array, generator=stream())
    obs = randn(6, 4)
    if cell is None:
        network = EncodedActorCritic(encoder, BOX, exploration=FOUR_STEPS, generator=stream())
        parameters, _ = Policy(network, BOX, VECTOR).forward(obs)
    else:
        network = RecurrentActorCritic(
            VECTOR, BOX, cell=cell, encoder=encoder, exploration=FOUR_STEPS, generator=stream()
        )
        policy = Policy(network, BOX, VECTOR)
        starts = torch.zeros(1, 6, dtype=torch.bool)
        parameters, *_ = policy.unroll(obs.unsqueeze(0), policy.initial_state(6), starts)

    means, logs, features = parameters.split((3, 3, parameters.shape[1] - 6), 1)

    assert network.log_deviations is not None
    variance = features**2 @ network.log_deviations.exp() ** 2 + 1e-6
    torch.testing.assert_close(logs, variance.sqrt().log())
    torch.testing.assert_close(means, network.heads.actor(features))
    assert means.requires_grad
    assert logs.requires_grad


@pytest.mark.parametrize(
    ("spec", "memory"), [(VECTOR, "none"), (VECTOR, "gru"), (IMAGE, "none"), (IMAGE, "lstm")], ids=str
)
def test_evaluation_gives_the_log_probs_that_acting_with_held_noise_gave(spec: ObservationSpec, memory) -> None:
    policy = make_policy(spec, SQUARE, memory=memory, exploration=FOUR_STEPS)
    obs = randn(5, 4) if spec is VECTOR else torch.randint(0, 255, (5, 3, 8, 8), generator=stream(), dtype=torch.uint8)

    acted = policy.act(obs, generator=stream(), noise=policy.held_noise(5))
    given = obs.unsqueeze(0) if policy.is_recurrent else obs
    evaluated = policy.evaluate(given, acted.actions)

    assert acted.actions.shape == (5, 2, 2)
    torch.testing.assert_close(evaluated.log_probs, acted.log_probs, rtol=1e-4, atol=1e-4)


def test_noise_is_one_matrix_per_environment_times_the_features() -> None:
    policy = Policy(mlp(), BOX, VECTOR)
    noise = policy.held_noise(5)
    assert noise is not None

    for seed in (1, 2):
        obs = randn(5, 4, seed=seed)
        acted = policy.act(obs, generator=stream(), noise=noise)

        means, _, features = policy.forward(obs)[0].detach().split((3, 3, 12), 1)
        matrices = noise.state_dict()["matrices"]  # [A, H, B]
        expected = means + torch.einsum("bh,ahb->ba", features, matrices)
        torch.testing.assert_close(acted.actions, expected, rtol=1e-5, atol=1e-5)
    assert not torch.equal(matrices[..., 0], matrices[..., 1])


@pytest.mark.parametrize(
    ("exploration", "changes"), [(FOUR_STEPS, [1, 5, 9]), (WHOLE_ROLLOUT, [1])], ids=["four", "whole"]
)
def test_actions_in_the_same_state_change_when_the_noise_is_drawn_anew_and_not_before(exploration, changes) -> None:
    policy = Policy(mlp(exploration=exploration), BOX, VECTOR)
    noise, generator, obs = policy.held_noise(2), stream(), randn(2, 4)
    assert noise is not None

    actions = [policy.act(obs, generator=generator, noise=noise).actions.clone() for _ in range(10)]
    noise.begin()
    after = policy.act(obs, generator=generator, noise=noise).actions

    changed = [k for k in range(1, 11) if k == 1 or not torch.equal(actions[k - 1], actions[k - 2])]
    assert changed == changes
    assert not torch.equal(after, actions[-1])


def test_matrices_have_the_deviations_the_network_learned() -> None:
    policy = Policy(mlp(), BOX, VECTOR)
    noise = policy.held_noise(20_000)
    assert noise is not None

    policy.act(randn(20_000, 4), generator=stream(), noise=noise)

    matrices = noise.state_dict()["matrices"]
    assert policy.network.log_deviations is not None
    torch.testing.assert_close(matrices.std(2).log(), policy.network.log_deviations.t(), atol=0.03, rtol=0)
    torch.testing.assert_close(matrices.mean(2) / matrices.std(2), torch.zeros(3, 12), atol=0.03, rtol=0)


@pytest.mark.parametrize("is_held", [True, False])
def test_an_action_has_the_state_dependent_deviation_whether_noise_is_held_or_not(is_held: bool) -> None:
    policy = Policy(mlp(), BOX, VECTOR)
    obs = randn(1, 4).expand(20_000, 4)

    noise = policy.held_noise(20_000) if is_held else None
    actions = policy.act(obs, generator=stream(), noise=noise).actions

    means, logs, _ = policy.forward(obs[:1])[0].detach()[0].split((3, 3, 12))
    torch.testing.assert_close(actions.std(0).log(), logs, atol=0.03, rtol=0)
    torch.testing.assert_close(actions.mean(0), means, atol=0.15, rtol=0)


def test_noise_goes_on_from_a_saved_state_for_the_rest_of_its_time() -> None:
    policy = Policy(mlp(), BOX, VECTOR)
    noise, restored, generator, obs = policy.held_noise(3), policy.held_noise(3), stream(), randn(3, 4)
    assert noise is not None
    assert restored is not None
    for _ in range(6):
        policy.act(obs, generator=generator, noise=noise)
    saved, stream_then = copy.deepcopy(noise.state_dict()), generator.get_state()
    expected = [policy.act(obs, generator=generator, noise=noise).actions.clone() for _ in range(7)]

    restored.load_state_dict(saved)
    generator.set_state(stream_then)
    again = [policy.act(obs, generator=generator, noise=restored).actions.clone() for _ in range(7)]

    assert all(torch.equal(one, other) for one, other in zip(expected, again, strict=True))


def test_all_randomness_comes_from_the_generator_and_only_when_noise_is_drawn() -> None:
    policy = Policy(mlp(), BOX, VECTOR)
    noise, generator, obs = policy.held_noise(3), stream(), randn(3, 4)
    everywhere = torch.get_rng_state()
    policy.act(obs, generator=generator, noise=noise)
    held = generator.get_state()

    policy.act(obs, generator=generator, noise=noise)

    assert torch.equal(generator.get_state(), held)
    assert not torch.equal(held, stream().get_state())
    assert torch.equal(torch.get_rng_state(), everywhere)


def test_the_greedy_action_is_the_mean_and_leaves_the_noise_alone() -> None:
    policy = Policy(mlp(), BOX, VECTOR)
    noise, generator, obs = policy.held_noise(3), stream(), randn(3, 4)
    assert noise is not None
    before = generator.get_state()

    acted = policy.act(obs, generator=generator, noise=noise, greedy=True)

    torch.testing.assert_close(acted.actions, policy.forward(obs)[0][:, :3])
    assert torch.equal(generator.get_state(), before)
    assert noise.state_dict()["steps_held"] is None


def test_the_quick_draw_and_the_general_one_agree() -> None:
    policy = Policy(mlp(), BOX, VECTOR)
    double = Policy(copy.deepcopy(policy.network).double(), BOX, VECTOR)
    noise, other, obs = policy.held_noise(5), double.held_noise(5), randn(5, 4)
    assert noise is not None
    assert other is not None
    quick = policy.act(obs, generator=stream(), noise=noise)
    other.load_state_dict(noise.state_dict())

    general = double.act(obs.double(), generator=stream(), noise=other)

    torch.testing.assert_close(general.actions, quick.actions, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(general.log_probs.float(), quick.log_probs, rtol=1e-4, atol=1e-4)


def test_a_state_without_features_has_next_to_no_noise_and_finite_scores() -> None:
    head = StateDependentGaussian(BOX, 4)
    policy = make_policy(VECTOR, BOX, hidden=(8,), activation="relu", exploration=FOUR_STEPS)

    acted = policy.act(torch.zeros(2, 4), generator=stream(), noise=policy.held_noise(2))
    evaluated = policy.evaluate(torch.zeros(2, 4), acted.actions.clone())
    evaluated.log_probs.sum().backward()

    assert head.num_parameters == 10
    assert torch.equal(acted.actions, torch.zeros(2, 3))
    assert all(bool(parameter.grad.isfinite().all()) for parameter in policy.parameters() if parameter.grad is not None)


def test_gaussian_exploration_holds_no_noise() -> None:
    assert make_policy(VECTOR, BOX).held_noise(4) is None
    assert make_policy(VECTOR, TWO).held_noise(4) is None


def test_a_teacher_of_one_exploration_can_be_compared_with_a_pupil_of_the_other() -> None:
    gaussian, by_state = make_policy(VECTOR, BOX, seed=1), Policy(mlp(), BOX, VECTOR)
    obs = randn(4, 4)
    p, q = gaussian.forward(obs)[0], by_state.forward(obs)[0]

    divergence = gaussian.head.divergence(p, q)

    expected = torch.distributions.kl_divergence(
        Normal(p[:, :3], p[:, 3:].exp()), Normal(q[:, :3], q[:, 3:6].exp())
    ).sum(1)
    torch.testing.assert_close(divergence, expected)
    torch.testing.assert_close(by_state.head.divergence(q, q), torch.zeros(4), rtol=0, atol=1e-6)


@pytest.mark.parametrize("action_spec", [TWO, MultiDiscreteActions((3, 2))], ids=str)
@pytest.mark.parametrize("memory", ["none", "gru"])
def test_choices_are_refused_with_the_way_out(action_spec, memory) -> None:
    with pytest.raises(ConfigError, match=r"continuous actions.*takes.*Discrete.*policy\.exploration\.kind=gaussian"):
        make_policy(VECTOR, action_spec, memory=memory, exploration=FOUR_STEPS)


def test_a_mask_and_another_number_of_environments_are_refused() -> None:
    policy = Policy(mlp(), BOX, VECTOR)
    noise = policy.held_noise(3)

    with pytest.raises(MaskError, match="no mask"):
        policy.act(randn(3, 4), generator=stream(), noise=noise, mask=torch.ones(3, 3, dtype=torch.bool))
    with pytest.raises(ConfigError, match="held for 3 environments, got observations of 2"):
        policy.act(randn(2, 4), generator=stream(), noise=noise)
