"""Each kind of observation finds an encoder, and each encoder the shape it promised."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from hookloop.errors import ConfigError
from hookloop.rl.policies import CnnActorCritic, CodeEncoder, DictEncoder, ImageEncoder, make_policy
from hookloop.rl.specs import ArraySpec, DiscreteActions, ObservationSpec
from tests.unit.rl.policies.examples import stream

FOUR = DiscreteActions(4)


def frames(*shape: int) -> Tensor:
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=stream())


@pytest.mark.parametrize("shape", [(4, 84, 84), (84, 84, 3), (84, 84), (7, 7, 3), (3, 3, 1), (12, 9, 9), (64, 64, 3)])
def test_images_of_any_size_and_order_are_encoded(shape: tuple[int, ...]) -> None:
    spec = ObservationSpec.single(ArraySpec(shape, "uint8"))
    policy = make_policy(spec, FOUR) if len(shape) == 3 else None
    network = CnnActorCritic(spec, FOUR, num_features=32, generator=stream())

    parameters, values = network(frames(2, *shape))

    assert parameters.shape == (2, 4)
    assert values.shape == (2,)
    assert policy is None or isinstance(policy.network, CnnActorCritic)


def test_channels_last_gives_what_channels_first_gives() -> None:
    first = ImageEncoder(ArraySpec((3, 7, 7), "uint8"), generator=stream(1))
    last = ImageEncoder(ArraySpec((7, 7, 3), "uint8"), generator=stream(1))
    obs = frames(2, 3, 7, 7)

    torch.testing.assert_close(first(obs), last(obs.permute(0, 2, 3, 1)))


def test_the_axis_of_channels_can_be_named() -> None:
    encoder = ImageEncoder(ArraySpec((5, 5, 9), "float32"), channels="last", generator=stream())

    assert encoder.layers[0].get_parameter("weight").shape[1] == 9


def test_brightness_is_scaled_to_one_and_codes_stay_as_they_are() -> None:
    frame = ImageEncoder(ArraySpec((1, 40, 40), "uint8"), generator=stream(1))
    scaled = ImageEncoder(ArraySpec((1, 40, 40), "float32"), generator=stream(1))
    grid = ImageEncoder(ArraySpec((7, 7, 3), "uint8"), generator=stream(1))
    codes = ImageEncoder(ArraySpec((7, 7, 3), "float32"), generator=stream(1))
    picture, cells = frames(2, 1, 40, 40), frames(2, 7, 7, 3)

    torch.testing.assert_close(frame(picture), scaled(picture.float() / 255))
    torch.testing.assert_close(grid(cells), codes(cells.float()))


def test_an_array_that_is_no_image_is_refused_by_convolutions() -> None:
    with pytest.raises(ConfigError, match=r"\[C, H, W\].*got \[5\]"):
        ImageEncoder(ArraySpec((5,), "float32"))


def dict_spec() -> ObservationSpec:
    return ObservationSpec(
        {
            "position": ArraySpec((3,), "float32"),
            "view.camera": ArraySpec((7, 7, 3), "uint8"),
            "mission": ArraySpec((), "int64", num_values=10),
            "keys": ArraySpec((2,), "int64", num_values=4),
        }
    )


def dict_obs(rows: int) -> dict[str, Tensor]:
    return {
        "position": torch.randn(rows, 3, generator=stream()),
        "view.camera": frames(rows, 7, 7, 3),
        "mission": torch.arange(rows) % 10,
        "keys": torch.arange(2 * rows).view(rows, 2) % 4,
    }


def test_dicts_are_encoded_entry_by_entry_and_every_entry_counts() -> None:
    encoder = DictEncoder(dict_spec(), hidden=(16, 24), generator=stream())
    obs = dict_obs(5)
    features = encoder(obs)

    assert features.shape == (5, 24) == (5, encoder.num_features)
    for key in obs:
        changed = {**obs, key: obs[key].roll(1, 0)}
        assert not torch.allclose(encoder(changed), features), key


@pytest.mark.parametrize("memory", ["none", "gru"])
def test_a_policy_over_dicts_acts_and_learns(memory) -> None:
    policy = make_policy(dict_spec(), FOUR, memory=memory)
    obs = dict_obs(5)

    acted = policy.act(obs, generator=stream())
    sequence = {key: part[None] for key, part in obs.items()} if policy.is_recurrent else obs
    evaluated = policy.evaluate(sequence, acted.actions)
    (evaluated.log_probs.sum() + evaluated.values.sum()).backward()

    torch.testing.assert_close(evaluated.log_probs, acted.log_probs, rtol=1e-5, atol=1e-5)
    assert all(parameter.grad is not None for parameter in policy.parameters())


def test_codes_are_looked_up_not_measured() -> None:
    spec = ObservationSpec.single(ArraySpec((), "int64", num_values=16))
    policy = make_policy(spec, FOUR)

    acted = policy.act(torch.arange(16), generator=stream())

    assert isinstance(policy.network.encoder, CodeEncoder)
    assert acted.actions.shape == (16,)


def test_codes_of_unknown_number_are_refused() -> None:
    with pytest.raises(ConfigError, match="num_values"):
        CodeEncoder(ArraySpec((), "int64"))


def test_equal_seeds_make_equal_policies() -> None:
    first, again, other = (make_policy(dict_spec(), FOUR, seed=seed) for seed in (1, 1, 2))

    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(first.parameters(), other.parameters(), strict=True))


def test_making_a_policy_leaves_the_global_stream_alone() -> None:
    before = torch.get_rng_state()

    make_policy(dict_spec(), FOUR)
    make_policy(ObservationSpec.single(ArraySpec((4,), "float32")), FOUR, memory="lstm")

    assert torch.equal(torch.get_rng_state(), before)
