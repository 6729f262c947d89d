"""Networks that differentiate themselves: inside autograd, as one node of its graph, or without it.

The second way does without the engine's fixed costs, which for a hundred rows are half the time of an update::

    scored = Scored(network, head, obs, actions, mask)
    scored.backpropagate(log_probs_grad=..., entropy_grad=..., values_grad=...)

Axis: B rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from hookloop.rl.actions import ActionHead
from hookloop.rl.policies.stacked import Pass, Passes


class Trace:
    """One pass of a network, with what the way back needs; its memory is used again once nobody holds the trace.

    ``parameters`` and ``values`` lie in that memory: to keep them longer than the trace, copy them.
    """

    __slots__ = ("_passes", "memory", "obs", "parameters", "values")

    def __init__(self, obs: Tensor, memory: Pass, passes: Passes) -> None:
        self.obs = obs
        self.memory = memory
        self.parameters, self.values = memory.parameters, memory.values
        self._passes = passes

    def __del__(self) -> None:
        self._passes.put_back(self.memory)


@runtime_checkable
class DifferentiatesItself(Protocol):
    """A network whose gradient is written by hand; a policy asks it directly, so its forward hooks are not called."""

    @property
    def num_parameters(self) -> int:
        """How many parameters of an action's distribution it puts out."""
        ...

    def infer(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Return action parameters and values without gradients; the next call with as many rows may overwrite them."""
        ...

    def weights(self) -> tuple[Tensor, ...]:
        """Return all parameters, in the order of ``gradients``."""
        ...

    def trace(self, obs: Tensor) -> Trace:
        """Compute action parameters and values outside autograd, and keep what the way back needs."""
        ...

    def gradients(
        self,
        trace: Trace,
        parameters_grad: Tensor | None,
        values_grad: Tensor | None,
        out: Sequence[Tensor | None] | None = None,
    ) -> list[Tensor]:
        """Return the gradients of the weights, written into ``out`` where it is given."""
        ...

    def obs_gradient(self, trace: Trace) -> Tensor:
        """Return the gradient of the observations as rows [B, in], after ``gradients``."""
        ...


class Scored:
    """A network's and a head's answer for a batch, outside autograd, and the way back from it.

    The tensors are valid as long as this is held.
    """

    def __init__(
        self, network: DifferentiatesItself, head: ActionHead, obs: Tensor, actions: Tensor, mask: Tensor | None
    ) -> None:
        with torch.no_grad():
            self.trace = network.trace(obs)
            self.parameters, self.values = self.trace.parameters, self.trace.values
            self.log_probs, self.entropy, self.saved = head.score(self.parameters, actions, mask)
        self._network, self._head = network, head

    def backpropagate(
        self,
        *,
        log_probs_grad: Tensor | None = None,
        entropy_grad: Tensor | None = None,
        values_grad: Tensor | None = None,
        parameters_grad: Tensor | None = None,
        accumulate: bool = False,
    ) -> None:
        """Write the gradients into the ``grad`` of the network's weights, or add them to it."""
        weights = self._network.weights()
        with torch.no_grad():
            grad = _parameters_grad(self._head, self.saved, parameters_grad, log_probs_grad, entropy_grad)
            out = None if accumulate else [weight.grad for weight in weights]
            found = self._network.gradients(self.trace, grad, values_grad, out)
            for weight, gradient in zip(weights, found, strict=True):
                if weight.grad is None:
                    weight.grad = gradient
                elif accumulate:
                    weight.grad.add_(gradient)


def run(network: DifferentiatesItself, obs: Tensor) -> tuple[Tensor, Tensor]:
    """Return action parameters and values as tensors of the autograd graph."""
    return _Run.apply(network, obs, *network.weights())  # type: ignore[no-any-return]  # torch types apply as Any


def run_and_score(
    network: DifferentiatesItself, head: ActionHead, obs: Tensor, actions: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return action parameters, values, log-probabilities and entropy as tensors of the autograd graph."""
    return _RunAndScore.apply(network, head, obs, actions, mask, *network.weights())  # type: ignore[no-any-return]  # as above


class _Run(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, network: DifferentiatesItself, obs: Tensor, *weights: Tensor) -> tuple[Tensor, Tensor]:
        ctx.network, ctx.trace, ctx.obs_shape = network, network.trace(obs), obs.shape
        # Saved only to notice if one is changed before the way back; the network reads its own.
        ctx.save_for_backward(*weights)
        ctx.set_materialize_grads(False)
        # What is returned may outlive the graph, and with it the memory of the trace.
        return ctx.trace.parameters.clone(), ctx.trace.values.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, parameters_grad: Tensor | None, values_grad: Tensor | None) -> tuple[Tensor | None, ...]:  # type: ignore[override]  # torch types it with *args
        _ = ctx.saved_tensors
        gradients = ctx.network.gradients(ctx.trace, parameters_grad, values_grad)
        obs_grad = ctx.network.obs_gradient(ctx.trace).view(ctx.obs_shape) if ctx.needs_input_grad[1] else None
        return None, obs_grad, *gradients


class _RunAndScore(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        network: DifferentiatesItself,
        head: ActionHead,
        obs: Tensor,
        actions: Tensor,
        mask: Tensor | None,
        *weights: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        trace = network.trace(obs)
        log_probs, entropy, saved = head.score(trace.parameters, actions, mask)
        ctx.network, ctx.head, ctx.trace, ctx.num_saved = network, head, trace, len(saved)
        ctx.obs_shape = obs.shape
        ctx.save_for_backward(*saved, *weights)
        ctx.set_materialize_grads(False)
        return trace.parameters.clone(), trace.values.clone(), log_probs, entropy

    @staticmethod
    @once_differentiable
    def backward(  # type: ignore[override]  # torch types it with *args
        ctx: Any,
        parameters_grad: Tensor | None,
        values_grad: Tensor | None,
        log_probs_grad: Tensor | None,
        entropy_grad: Tensor | None,
    ) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors[: ctx.num_saved]
        grad = _parameters_grad(ctx.head, saved, parameters_grad, log_probs_grad, entropy_grad)
        gradients = ctx.network.gradients(ctx.trace, grad, values_grad)
        obs_grad = ctx.network.obs_gradient(ctx.trace).view(ctx.obs_shape) if ctx.needs_input_grad[2] else None
        return None, None, obs_grad, None, None, *gradients


def _parameters_grad(
    head: ActionHead,
    saved: Sequence[Tensor],
    direct: Tensor | None,
    log_probs_grad: Tensor | None,
    entropy_grad: Tensor | None,
) -> Tensor | None:
    """Return the gradient of the action parameters: what reaches them directly and what comes through the score."""
    if log_probs_grad is None and entropy_grad is None:
        return direct
    through_score = head.score_gradient(saved, log_probs_grad, entropy_grad)
    return through_score if direct is None else through_score.add_(direct)
