"""Specs and networks the tests of policies share."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hookloop.rl.policies import MlpActorCritic
from hookloop.rl.specs import ArraySpec, ContinuousActions, DiscreteActions, ObservationSpec

VECTOR = ObservationSpec.single(ArraySpec((4,), "float32"))
TWO = DiscreteActions(2)
BOX = ContinuousActions((3,), (-1.0,) * 3, (1.0,) * 3)


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def randn(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(shape, generator=stream(seed))


class Plain(nn.Module):
    """What MlpActorCritic computes, as two chains of modules with the same weights."""

    def __init__(self, network: MlpActorCritic, activation: str) -> None:
        super().__init__()
        self.actor = self._chain(network, 0, network.actor, activation)
        self.critic = self._chain(network, -1, network.critic, activation)
        self.log_deviations = None
        if network.log_deviations is not None:
            self.log_deviations = nn.Parameter(network.log_deviations.detach().clone())

    def _chain(self, network: MlpActorCritic, which: int, last: nn.Linear, activation: str) -> nn.Sequential:
        parts: list[nn.Module] = []
        for layer in network.hidden:
            weight, bias = layer.get_parameter("weight").detach(), layer.get_parameter("bias").detach()
            linear = nn.Linear(weight.shape[1], weight.shape[2], dtype=weight.dtype)
            linear.weight.data, linear.bias.data = weight[which].t().clone(), bias[which, 0].clone()
            parts += [linear, nn.Tanh() if activation == "tanh" else nn.ReLU()]
        copy = nn.Linear(last.in_features, last.out_features, dtype=last.weight.dtype)
        copy.load_state_dict(last.state_dict())
        return nn.Sequential(*parts, copy)

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        parameters = self.actor(obs)
        if self.log_deviations is not None:
            parameters = torch.cat((parameters, self.log_deviations.expand_as(parameters)), 1)
        return parameters, self.critic(obs)


class OwnNetwork(nn.Module):
    """A user's network: nothing of ours in it."""

    def __init__(self, num_outputs: int = 2) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 16), nn.ReLU())
        self.actor, self.critic = nn.Linear(16, num_outputs), nn.Linear(16, 1)

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        features = self.body(obs)
        return self.actor(features), self.critic(features)
