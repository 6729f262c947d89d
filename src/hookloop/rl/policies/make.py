"""The policy that fits an environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import nn

from hookloop.rl.config import GAUSSIAN, Exploration
from hookloop.rl.policies.base import Policy
from hookloop.rl.policies.encoded import CnnActorCritic, EncodedActorCritic
from hookloop.rl.policies.encoders import is_code, is_image, observation_encoder
from hookloop.rl.policies.mlp import MlpActorCritic
from hookloop.rl.policies.recurrent import RecurrentActorCritic
from hookloop.rl.policies.stacked import Activation
from hookloop.rl.specs import ActionSpec, ObservationSpec


def make_policy(
    observation_spec: ObservationSpec,
    action_spec: ActionSpec,
    *,
    hidden: Sequence[int] = (64, 64),
    activation: Activation = "tanh",
    shared: bool = False,
    memory: Literal["none", "gru", "lstm"] = "none",
    exploration: Exploration = GAUSSIAN,
    seed: int = 0,
    check_masks: bool = False,
) -> Policy:
    """Make a policy whose network fits the observations: vectors, images, codes, or dicts of them.

    Args:
        observation_spec: What the environment shows.
        action_spec: What the environment takes.
        hidden: The widths of the layers over vectors.
        activation: What stands between those layers.
        shared: Let actions and values share the layers over a single vector; all other networks always do.
        memory: A recurrent cell, for what the observations do not show.
        exploration: How the noise of continuous actions comes about: drawn anew at each step, or as
            ``StateDependentExploration(resample_steps=4)``.
        seed: The first weights follow from it.
        check_masks: Raise when a mask leaves no legal action; for debugging.
    """
    generator = torch.Generator().manual_seed(seed)
    is_vector = not observation_spec.is_dict and not is_code(observation_spec.array)
    network: nn.Module
    if memory != "none":
        network = RecurrentActorCritic(
            observation_spec, action_spec, cell=memory, hidden=hidden, activation=activation, exploration=exploration,
            generator=generator,
        )  # fmt: skip
    elif is_vector and is_image(observation_spec.array):
        network = CnnActorCritic(observation_spec, action_spec, exploration=exploration, generator=generator)
    elif is_vector:
        network = MlpActorCritic(
            observation_spec, action_spec, hidden=hidden, activation=activation, shared=shared, exploration=exploration,
            generator=generator,
        )  # fmt: skip
    else:
        encoder = observation_encoder(observation_spec, hidden=hidden, activation=activation, generator=generator)
        network = EncodedActorCritic(encoder, action_spec, exploration=exploration, generator=generator)
    return Policy(network, action_spec, observation_spec, check_masks=check_masks)
