"""Policies: a network that looks at observations, and a head that turns its outputs into actions.

``make_policy(observation_spec, action_spec)`` picks the network: linear layers for vectors, convolutions for images,
one encoder per entry for dicts, with a GRU or an LSTM over any of them if asked.

A policy of your own is one line. Any module will do that returns the parameters of the actions' distribution and the
values; how many parameters that are, the head says::

    class MyNetwork(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Linear(4, 32), nn.ReLU())
            self.actor, self.critic = nn.Linear(32, 2), nn.Linear(32, 1)

        def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
            features = self.body(obs)
            return self.actor(features), self.critic(features)

    policy = Policy(MyNetwork(), DiscreteActions(2), ObservationSpec.single(ArraySpec((4,), "float32")))

A network with memory has ``is_recurrent = True``, ``initial_state(num_envs)`` and
``forward(obs, state, starts) -> (parameters, values, state)``; see ``Policy``.
"""

from hookloop.rl.policies.base import Acted, Evaluated, NetworkOutputError, Policy
from hookloop.rl.policies.by_hand import DifferentiatesItself, Scored
from hookloop.rl.policies.deviations import state_dependent_parameters
from hookloop.rl.policies.encoded import ActorCriticHeads, CnnActorCritic, EncodedActorCritic
from hookloop.rl.policies.encoders import (
    CodeEncoder,
    DictEncoder,
    Encoder,
    ImageEncoder,
    VectorEncoder,
    observation_encoder,
)
from hookloop.rl.policies.held_noise import HeldNoise
from hookloop.rl.policies.make import make_policy
from hookloop.rl.policies.mlp import MlpActorCritic
from hookloop.rl.policies.recurrent import RecurrentActorCritic

__all__ = [
    "Acted",
    "ActorCriticHeads",
    "CnnActorCritic",
    "CodeEncoder",
    "DictEncoder",
    "DifferentiatesItself",
    "EncodedActorCritic",
    "Encoder",
    "Evaluated",
    "HeldNoise",
    "ImageEncoder",
    "MlpActorCritic",
    "NetworkOutputError",
    "Policy",
    "RecurrentActorCritic",
    "Scored",
    "VectorEncoder",
    "make_policy",
    "observation_encoder",
    "state_dependent_parameters",
]
