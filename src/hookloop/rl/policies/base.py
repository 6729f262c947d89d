"""What a policy is: a network that looks at observations, and a head that turns its outputs into actions.

Axes: T steps of a sequence, B rows (environments or transitions), P parameters of an action's distribution.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias, cast

import torch
from torch import Tensor, nn

from hookloop.errors import ConfigError, HookloopError
from hookloop.rl.actions import ActionHead, StateDependentGaussian, action_head
from hookloop.rl.config import GAUSSIAN, Exploration, StateDependentExploration
from hookloop.rl.policies.by_hand import DifferentiatesItself, Scored, run_and_score
from hookloop.rl.policies.drawing import draws_for
from hookloop.rl.policies.held_noise import HeldNoise
from hookloop.rl.specs import ActionSpec, ArraySpec, ObservationSpec

Obs: TypeAlias = Tensor | Mapping[str, Tensor]
"""A batch of observations: one tensor, or tensors by key."""

State: TypeAlias = "Tensor | tuple[State, ...]"
"""A recurrent network's memory: a tensor [B, ...], or a tuple of such."""

StateSpec: TypeAlias = "ArraySpec | tuple[StateSpec, ...]"
"""The shape and dtype of a memory for one environment, in its form."""


class NetworkOutputError(HookloopError, ValueError):
    """A network returned something that is no action parameters and values."""


class Acted(NamedTuple):
    """What a policy chose; overwritten by its next choice for as many rows."""

    actions: Tensor
    log_probs: Tensor
    values: Tensor
    state: State | None


class Evaluated(NamedTuple):
    """What a policy thinks of given actions, with gradients; one entry per row."""

    log_probs: Tensor
    entropy: Tensor
    values: Tensor
    parameters: Tensor


class Policy(nn.Module):
    """A network and the action head that reads its outputs.

    Any module works as a network that returns ``(parameters, values)`` of shapes [B, P] and [B] or [B, 1], where P is
    ``action_head(action_spec).num_parameters``::

        policy = Policy(MyNetwork(), action_spec, observation_spec)

    A recurrent network has ``is_recurrent = True``, ``initial_state(num_envs)``, and
    ``forward(obs, state, starts) -> (parameters, values, state)`` over sequences: observations [T, B, ...], ``starts``
    [T, B] True where an episode begins and the memory must be empty, parameters [T, B, P], values [T, B].

    A network that explores by state has ``exploration``, a ``StateDependentExploration``, and ``log_deviations``
    [H, A], those of its noise matrices; its parameters are ``state_dependent_parameters`` of its H features.

    Args:
        network: What looks at observations.
        action_spec: What the environment takes.
        observation_spec: What the environment shows.
        check_masks: Raise when a mask leaves no legal action; costs a look at each mask, so it is for debugging.
    """

    def __init__(
        self,
        network: nn.Module,
        action_spec: ActionSpec,
        observation_spec: ObservationSpec,
        *,
        check_masks: bool = False,
    ) -> None:
        super().__init__()
        self.network = network
        self.action_spec = action_spec
        self.observation_spec = observation_spec
        self.exploration: Exploration = getattr(network, "exploration", GAUSSIAN)
        self.head = self._make_head()
        self.is_recurrent = bool(getattr(network, "is_recurrent", False))
        self.check_masks = check_masks
        # Asked once: looking up a protocol costs as much as a small layer.
        self._differentiates_itself = isinstance(network, DifferentiatesItself) and not self.is_recurrent
        if isinstance(network, DifferentiatesItself) and network.num_parameters != self.head.num_parameters:
            raise NetworkOutputError(
                f"{type(network).__name__} was made for {network.num_parameters} action parameters, but {action_spec} "
                f"has {self.head.num_parameters}; give both the same action spec."
            )
        self._draws = draws_for(self.head)

    def forward(self, obs: Obs) -> tuple[Tensor, Tensor]:
        """Return action parameters [B, P] and values [B]; for networks without memory."""
        if self.is_recurrent:
            raise ConfigError(f"{type(self.network).__name__} has a memory; call unroll(obs, state, starts) instead.")
        return self._checked(self.network(obs), _num_rows(obs))

    def unroll(self, obs: Obs, state: State, starts: Tensor) -> tuple[Tensor, Tensor, State]:
        """Run a network with memory over a sequence [T, B, ...]; return parameters [T B, P], values [T B] and state."""
        steps, rows = starts.shape
        returned = self.network(obs, state, starts)
        if not isinstance(returned, tuple) or len(returned) != 3:
            name = type(self.network).__name__
            raise NetworkOutputError(f"{name}.forward must return (parameters, values, state), got {_words(returned)}.")
        parameters, values, state = returned
        if isinstance(parameters, Tensor) and parameters.dim() == 3:
            parameters = parameters.reshape(steps * rows, -1)
        values = values.reshape(-1) if isinstance(values, Tensor) else values
        parameters, values = self._checked((parameters, values), steps * rows)
        return parameters, values, state

    def act(
        self,
        obs: Obs,
        *,
        generator: torch.Generator,
        mask: Tensor | None = None,
        state: State | None = None,
        starts: Tensor | None = None,
        noise: HeldNoise | None = None,
        greedy: bool = False,
    ) -> Acted:
        """Choose actions [B, ...]; what is returned may be overwritten by the next call, so store a copy.

        Args:
            obs: Observations [B, ...].
            generator: All randomness comes from here.
            mask: bool [B, A], True where an action is legal.
            state: A recurrent network's memory; None is an empty one. Others ignore it.
            starts: bool [B], True where the memory must be emptied first; None if the caller has done so.
            noise: From ``held_noise``, for exploration that depends on the state; None draws each action anew, from
                the same distribution.
            greedy: Take the likeliest action.
        """
        if mask is not None and self.check_masks:
            self.head.check_mask(mask)
        if self.is_recurrent:
            with torch.no_grad():
                parameters, values, state = self._step(obs, state, starts)
        elif self._differentiates_itself and isinstance(obs, Tensor):
            parameters, values = cast(DifferentiatesItself, self.network).infer(obs)
        else:
            with torch.inference_mode():
                parameters, values = self.forward(obs)
            values = values.clone()  # a tensor of inference mode could not become part of a graph later
        return Acted(*self._choose(parameters, mask, generator, noise, greedy), values, state)

    def evaluate(
        self,
        obs: Obs,
        actions: Tensor,
        *,
        mask: Tensor | None = None,
        state: State | None = None,
        starts: Tensor | None = None,
    ) -> Evaluated:
        """Score given actions, with gradients.

        A recurrent policy takes sequences: observations [T, B, ...], ``starts`` [T, B] and the memory at the first
        step; everything it returns is flat, [T B].
        """
        if self.is_recurrent:
            return self._evaluate_sequence(obs, actions, mask, state, starts)
        if mask is not None and self.check_masks:
            self.head.check_mask(mask)
        if self._differentiates_itself and isinstance(obs, Tensor):
            network = cast(DifferentiatesItself, self.network)
            parameters, values, log_probs, entropy = run_and_score(network, self.head, obs, actions, mask)
        else:
            parameters, values = self.forward(obs)
            log_probs, entropy = self.head.evaluate(parameters, actions, mask)
        return Evaluated(log_probs, entropy, values, parameters)

    @property
    def can_backpropagate(self) -> bool:
        """Whether ``evaluate_by_hand`` works: the network knows its own gradient."""
        return self._differentiates_itself

    def evaluate_by_hand(self, obs: Tensor, actions: Tensor, *, mask: Tensor | None = None) -> Scored:
        """Score given actions outside autograd; ``backpropagate`` on the result writes the gradients of the weights.

        For a hundred rows an update takes half the time this way. The numbers are those of ``evaluate``.
        """
        if not self._differentiates_itself:
            raise ConfigError(f"{type(self.network).__name__} does not know its own gradient; use evaluate instead.")
        return Scored(cast(DifferentiatesItself, self.network), self.head, obs, actions, mask)

    def value(self, obs: Obs, state: State | None = None, starts: Tensor | None = None) -> Tensor:
        """Return values [B] without gradients, in memory of their own."""
        with torch.no_grad():
            if self.is_recurrent:
                return self._step(obs, state, starts)[1]
            return self.forward(obs)[1]

    def initial_state(self, num_envs: int) -> State:
        """Return an empty memory for so many environments."""
        if not self.is_recurrent:
            raise ConfigError(f"{type(self.network).__name__} has no memory: its is_recurrent is False.")
        initial: Callable[[int], State] = self.network.initial_state  # type: ignore[assignment]  # part of the protocol
        return initial(num_envs)

    def held_noise(self, num_envs: int) -> HeldNoise | None:
        """Return noise for so many environments if exploration depends on the state; its owner saves it."""
        if not isinstance(self.exploration, StateDependentExploration):
            return None
        head, log_deviations = cast(StateDependentGaussian, self.head), self._noise_log_deviations
        return HeldNoise(head, log_deviations, num_envs=num_envs, resample_steps=self.exploration.resample_steps)

    @property
    def state_spec(self) -> StateSpec | None:
        """Shape and dtype of the memory for one environment, in the form of the memory; None without one."""
        return _spec_of(self.initial_state(1)) if self.is_recurrent else None

    def experience_spec(self) -> dict[str, ArraySpec]:
        """Return what must be stored for each step for this policy to be trained, besides observations and actions."""
        return {"starts": ArraySpec((), "bool")} if self.is_recurrent else {}

    def _make_head(self) -> ActionHead:
        if isinstance(self.exploration, StateDependentExploration):
            return StateDependentGaussian(self.action_spec, self._noise_log_deviations.shape[0])
        return action_head(self.action_spec)

    @property
    def _noise_log_deviations(self) -> Tensor:
        return cast(Tensor, self.network.log_deviations)

    def _choose(
        self,
        parameters: Tensor,
        mask: Tensor | None,
        generator: torch.Generator,
        noise: HeldNoise | None,
        greedy: bool,
    ) -> tuple[Tensor, Tensor]:
        if noise is not None and not greedy:
            with torch.no_grad():
                return noise.draw(parameters, self._noise_log_deviations, mask, generator)
        if not greedy and self._draws is not None and parameters.is_cpu and parameters.dtype is torch.float32:
            return self._draws.draw(parameters, mask, generator)
        with torch.no_grad():
            if not greedy:
                return self.head.sample(parameters, mask, generator)
            actions = self.head.mode(parameters, mask)
            return actions, self.head.score(parameters, actions, mask).log_probs

    def _step(self, obs: Obs, state: State | None, starts: Tensor | None) -> tuple[Tensor, Tensor, State]:
        rows = _num_rows(obs)
        state = self.initial_state(rows) if state is None else state
        starts = torch.zeros(rows, dtype=torch.bool, device=_device(obs)) if starts is None else starts
        sequence = (
            obs.unsqueeze(0) if isinstance(obs, Tensor) else {key: part.unsqueeze(0) for key, part in obs.items()}
        )
        return self.unroll(sequence, state, starts.unsqueeze(0))

    def _evaluate_sequence(
        self, obs: Obs, actions: Tensor, mask: Tensor | None, state: State | None, starts: Tensor | None
    ) -> Evaluated:
        steps, rows = (obs if isinstance(obs, Tensor) else next(iter(obs.values()))).shape[:2]
        state = self.initial_state(rows) if state is None else state
        starts = torch.zeros((steps, rows), dtype=torch.bool, device=_device(obs)) if starts is None else starts
        parameters, values, _ = self.unroll(obs, state, starts)
        mask = None if mask is None else mask.reshape(steps * rows, -1)
        if mask is not None and self.check_masks:
            self.head.check_mask(mask)
        flat_actions = actions.reshape(steps * rows, *self.head.action_shape)
        log_probs, entropy = self.head.evaluate(parameters, flat_actions, mask)
        return Evaluated(log_probs, entropy, values, parameters)

    def _checked(self, returned: Any, rows: int) -> tuple[Tensor, Tensor]:
        name, width = type(self.network).__name__, self.head.num_parameters
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise NetworkOutputError(f"{name}.forward must return (parameters, values), got {_words(returned)}.")
        parameters, values = returned
        if not isinstance(parameters, Tensor) or tuple(parameters.shape) != (rows, width):
            raise NetworkOutputError(
                f"{name} must return action parameters of shape [{rows}, {width}] for {self.action_spec}, "
                f"got {_words(parameters)}."
            )
        if not isinstance(values, Tensor) or tuple(values.shape) not in ((rows,), (rows, 1)):
            raise NetworkOutputError(
                f"{name} must return values of shape [{rows}] or [{rows}, 1], got {_words(values)}."
            )
        if not (parameters.is_floating_point() and values.is_floating_point()):
            raise NetworkOutputError(
                f"{name} must return floating point numbers, got {_words(parameters)} as parameters and "
                f"{_words(values)} as values."
            )
        return parameters, values if values.dim() == 1 else values.squeeze(1)


def _num_rows(obs: Obs) -> int:
    return (obs if isinstance(obs, Tensor) else next(iter(obs.values()))).shape[0]


def _device(obs: Obs) -> torch.device:
    return (obs if isinstance(obs, Tensor) else next(iter(obs.values()))).device


def _spec_of(state: State) -> StateSpec:
    if isinstance(state, Tensor):
        return ArraySpec(tuple(state.shape[1:]), str(state.dtype).removeprefix("torch."))
    return tuple(_spec_of(part) for part in state)


def _words(value: object) -> str:
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}: ({', '.join(_words(part) for part in value)})"
    return f"a {type(value).__name__}"
