"""Networks without memory over any encoder."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hookloop.rl.config import GAUSSIAN, Exploration, StateDependentExploration
from hookloop.rl.policies.deviations import state_dependent_parameters
from hookloop.rl.policies.encoders import Channels, Encoder, ImageEncoder
from hookloop.rl.policies.mlp import last_layers
from hookloop.rl.specs import ActionSpec, ObservationSpec


class ActorCriticHeads(nn.Module):
    """The last layers for actions and values, over shared features.

    For continuous actions the logarithms of the deviations are parameters of their own.
    """

    def __init__(
        self,
        num_features: int,
        action_spec: ActionSpec,
        generator: torch.Generator | None = None,
        exploration: Exploration = GAUSSIAN,
    ) -> None:
        super().__init__()
        self.explores_by_state = isinstance(exploration, StateDependentExploration)
        self.actor, self.critic, self.log_deviations = last_layers(num_features, action_spec, generator, exploration)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return action parameters [..., P] and values [...]."""
        parameters = self.actor(features)
        if self.log_deviations is not None and self.explores_by_state:
            parameters = state_dependent_parameters(parameters, features, self.log_deviations)
        elif self.log_deviations is not None:
            parameters = torch.cat((parameters, self.log_deviations.expand_as(parameters)), -1)
        return parameters, self.critic(features).squeeze(-1)


class EncodedActorCritic(nn.Module):
    """An encoder, and the last layers for actions and values over its features.

    Args:
        encoder: Any module with ``num_features`` that turns observations into features [B, num_features].
        action_spec: What the environment takes.
        exploration: How the noise of continuous actions comes about.
        generator: The random stream of the first weights of the last layers.
    """

    def __init__(
        self,
        encoder: Encoder,
        action_spec: ActionSpec,
        *,
        exploration: Exploration = GAUSSIAN,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.exploration = exploration
        self.heads = ActorCriticHeads(encoder.num_features, action_spec, generator, exploration)

    @property
    def log_deviations(self) -> Tensor | None:
        """The logarithms of the deviations of continuous actions, or of their noise matrices' entries."""
        return self.heads.log_deviations

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Return action parameters [B, P] and values [B]."""
        return self.heads(self.encoder(obs))


class CnnActorCritic(EncodedActorCritic):
    """Convolutions over frames or small grids, shared by actions and values.

    Args:
        observation_spec: One array [C, H, W], [H, W, C] or [H, W].
        action_spec: What the environment takes.
        num_features: The width of the last hidden layer; 512 for frames and 128 for grids by default.
        channels: Where the axis of channels is; ``auto`` takes the last one if it is shorter than the first.
        exploration: How the noise of continuous actions comes about.
        generator: The random stream of the first weights.
    """

    def __init__(
        self,
        observation_spec: ObservationSpec,
        action_spec: ActionSpec,
        *,
        num_features: int | None = None,
        channels: Channels = "auto",
        exploration: Exploration = GAUSSIAN,
        generator: torch.Generator | None = None,
    ) -> None:
        encoder = ImageEncoder(
            observation_spec.array, num_features=num_features, channels=channels, generator=generator
        )
        super().__init__(encoder, action_spec, exploration=exploration, generator=generator)
