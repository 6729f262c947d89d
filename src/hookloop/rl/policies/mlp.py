"""The network for observations that are vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from hookloop.errors import ConfigError, did_you_mean
from hookloop.rl.actions import require_continuous
from hookloop.rl.config import GAUSSIAN, Exploration, StateDependentExploration
from hookloop.rl.policies.by_hand import Trace, run
from hookloop.rl.policies.initial import HIDDEN_GAIN, POLICY_GAIN, VALUE_GAIN, begin_orthogonal, linear
from hookloop.rl.policies.stacked import TORCH_ACTIVATIONS, Activation, Passes, StackSizes, WeightViews
from hookloop.rl.specs import ActionSpec, ContinuousActions, DiscreteActions, MultiDiscreteActions, ObservationSpec


class MlpActorCritic(nn.Module):
    """Two networks of linear layers, for actions and for values, computed together as one stack.

    In the state dict, a hidden layer's weight is [2, in, out] and its bias [2, 1, out], the actor's first and the
    critic's second; with ``shared``, both have one entry. The last layers, ``actor`` and ``critic``, are apart.

    Args:
        observation_spec: One array, of any shape; it is flattened.
        action_spec: For continuous actions the logarithms of the deviations are parameters of their own.
        hidden: The widths of the hidden layers, at least one.
        activation: What stands between the layers.
        shared: Let actions and values use the same hidden layers.
        exploration: How the noise of continuous actions comes about.
        generator: The random stream of the first weights.
    """

    def __init__(
        self,
        observation_spec: ObservationSpec,
        action_spec: ActionSpec,
        *,
        hidden: Sequence[int] = (64, 64),
        activation: Activation = "tanh",
        shared: bool = False,
        exploration: Exploration = GAUSSIAN,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        check_layers(hidden, activation)
        self.exploration = exploration
        num_inputs = max(observation_spec.array.size, 1)
        is_continuous = isinstance(action_spec, ContinuousActions)
        self.sizes = StackSizes(
            1 if shared else 2, num_inputs, tuple(hidden), num_actor_outputs(action_spec), is_continuous,
            explores_by_state=isinstance(exploration, StateDependentExploration),
        )  # fmt: skip
        widths = (num_inputs, *hidden)
        self.hidden = nn.ModuleList(
            StackedLinear(self.sizes.num_networks, before, after, generator) for before, after in pairwise(widths)
        )
        self.actor, self.critic, self.log_deviations = last_layers(hidden[-1], action_spec, generator, exploration)
        self._inferences = Passes(self.sizes, activation)
        self._passes = Passes(self.sizes, activation)
        self._views = WeightViews()

    @property
    def num_parameters(self) -> int:
        """How many parameters of an action's distribution it puts out."""
        return self.sizes.num_parameters

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Return action parameters [B, P] and values [B]."""
        return run(self, obs)

    def infer(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Do the same without gradients, in memory that the next call with as many rows overwrites."""
        weights = self.weights()
        obs = _as_rows(obs, weights[0].dtype)
        memory = self._inferences.keep(obs.shape[0], weights[0])
        if memory.is_small:
            memory.forward_small(obs.numpy(), self._views.of(weights))
        else:
            with torch.no_grad():
                memory.forward(obs, weights)
        return memory.parameters, memory.values

    def weights(self) -> tuple[Tensor, ...]:
        """Return all parameters, in the order of ``gradients``."""
        # Looked up at every step of collection, where the usual way costs as much as a layer. A copy kept here would be
        # quicker still, and wrong as soon as somebody puts another parameter or layer in place.
        modules: dict[str, Any] = self._modules
        found: list[Tensor] = []
        for layer in (*modules["hidden"]._modules.values(), modules["actor"], modules["critic"]):
            found += layer._parameters.values()
        if self.log_deviations is not None:
            found.append(self.log_deviations)
        return tuple(found)

    def trace(self, obs: Tensor) -> Trace:
        """Compute action parameters and values outside autograd, and keep what the way back needs."""
        weights = self.weights()
        obs = _as_rows(obs, weights[0].dtype)
        memory = self._passes.take(obs.shape[0], weights[0])
        with torch.no_grad():
            memory.forward(obs, weights)
        return Trace(obs, memory, self._passes)

    def gradients(
        self,
        trace: Trace,
        parameters_grad: Tensor | None,
        values_grad: Tensor | None,
        out: Sequence[Tensor | None] | None = None,
    ) -> list[Tensor]:
        """Return the gradients of the weights, written into ``out`` where it is given."""
        weights = self.weights()
        out = [None] * len(weights) if out is None else out
        with torch.no_grad():
            return trace.memory.backward(trace.obs, weights, parameters_grad, values_grad, out)

    def obs_gradient(self, trace: Trace) -> Tensor:
        """Return the gradient of the observations, after ``gradients``."""
        with torch.no_grad():
            return trace.memory.obs_gradient(self.weights())


class StackedLinear(nn.Module):
    """A linear layer of several networks at once: weight [S, in, out], bias [S, 1, out]."""

    def __init__(
        self, num_networks: int, num_inputs: int, num_outputs: int, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_networks, num_inputs, num_outputs))
        self.bias = nn.Parameter(torch.zeros(num_networks, 1, num_outputs))
        for weight in self.weight.detach().unbind(0):
            begin_orthogonal(weight.t(), HIDDEN_GAIN, generator)


def num_actor_outputs(action_spec: ActionSpec) -> int:
    """Return how many numbers a network says about an action, besides deviations that no observation changes."""
    if isinstance(action_spec, DiscreteActions | MultiDiscreteActions):
        return action_spec.num_choices
    return math.prod(action_spec.shape)


def last_layers(
    num_features: int,
    action_spec: ActionSpec,
    generator: torch.Generator | None,
    exploration: Exploration = GAUSSIAN,
) -> tuple[nn.Linear, nn.Linear, nn.Parameter | None]:
    """Make the actor's and the critic's last layer, and the log-deviations of continuous actions.

    Those are [O], one for each entry of an action, or [H, O] for each feature and entry if they depend on the state.
    """
    actor = linear(num_features, num_actor_outputs(action_spec), POLICY_GAIN, generator)
    critic = linear(num_features, 1, VALUE_GAIN, generator)
    if isinstance(exploration, StateDependentExploration):
        require_continuous(action_spec)
        return actor, critic, nn.Parameter(torch.full(actor.weight.t().shape, exploration.initial_log_std))
    is_continuous = isinstance(action_spec, ContinuousActions)
    return actor, critic, nn.Parameter(torch.zeros(actor.out_features)) if is_continuous else None


def check_layers(hidden: Sequence[int], activation: str) -> None:
    """Refuse widths and activations that make no network."""
    if not hidden or min(hidden) < 1:
        raise ConfigError(f"A network needs at least one hidden layer of at least one unit, got {tuple(hidden)}.")
    if activation not in TORCH_ACTIVATIONS:
        raise ConfigError(f"There is no activation {activation!r}.{did_you_mean(activation, TORCH_ACTIVATIONS)}")


def _as_rows(obs: Tensor, dtype: torch.dtype) -> Tensor:
    if obs.dim() != 2:
        obs = obs.reshape(obs.shape[0], -1)
    return obs if obs.dtype == dtype else obs.to(dtype)
