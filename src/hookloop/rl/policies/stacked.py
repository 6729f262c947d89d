"""Actor and critic as one stack of networks: one pass forward and one pass back, each a few large operations.

Two small networks cost twice the operations of one and leave the processor idle between them. Here the weights of a
layer lie in one tensor [S, in, out], S being 2 (actor, then critic) or 1 (shared), and a layer is one batched product.
The way back is written by hand. Axes: S networks of the stack, B rows, H units of a layer, O outputs of the actor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hookloop.rl.policies.deviations import StateDeviations

Activation = Literal["tanh", "relu"]
Weights = Sequence[Tensor]
"""Weight and bias of each hidden layer, of the actor's last and of the critic's; then the log-deviations, if any: [O],
or [H, O] if they depend on the state."""

# A numpy call costs a third of a torch call, but its matrix product is slower, and starts threads of its own beyond
# this many multiplications.
MOST_SMALL_PRODUCTS = 64**3

MOST_SIZES_KEPT = 16
MOST_KEPT_PER_SIZE = 2


@dataclass(frozen=True, slots=True)
class StackSizes:
    """The sizes of a stack of networks."""

    num_networks: int
    num_inputs: int
    hidden: tuple[int, ...]
    num_outputs: int
    has_deviations: bool
    """Whether the logarithms of deviations follow the actor's outputs."""
    explores_by_state: bool = False
    """Whether the deviations are made of the actor's last hidden layer, which then follows them."""

    @property
    def num_parameters(self) -> int:
        """The outputs, the deviations if there are any, and the features if the deviations are made of them."""
        num_features = self.hidden[-1] if self.explores_by_state else 0
        return (2 * self.num_outputs if self.has_deviations else self.num_outputs) + num_features

    def is_small(self, num_rows: int) -> bool:
        """Tell whether a pass over so many rows is quicker in numpy."""
        widths = (self.num_inputs, *self.hidden, self.num_outputs)
        most = max(before * after for before, after in pairwise(widths))
        return num_rows * most <= MOST_SMALL_PRODUCTS


class Pass:
    """The memory of one pass over B rows, forward and back; a second pass overwrites the first.

    ``parameters`` [B, O], or [B, 2 O] with deviations, or [B, 2 O + H] if those depend on the state, and ``values`` [B]
    are views of it.
    """

    def __init__(self, sizes: StackSizes, activation: Activation, num_rows: int, like: Tensor) -> None:
        def empty(*shape: int) -> Tensor:
            return torch.empty(shape, dtype=like.dtype, device=like.device)

        self.num_networks = sizes.num_networks
        self.num_rows = num_rows
        self.is_small = like.dtype == torch.float32 and like.is_cpu and sizes.is_small(num_rows)
        self.hidden = [empty(sizes.num_networks, num_rows, width) for width in sizes.hidden]
        top = self.hidden[-1]
        self._actor_top, self._critic_top = top[0], top[-1]
        self._actor_top_HB, self._critic_top_HB = self._actor_top.t(), self._critic_top.t()
        # A product with few columns is slow and one with few rows is not: hence the transposed results.
        parameters = empty(sizes.num_parameters, num_rows)
        self.outputs_OB = parameters[: sizes.num_outputs]
        deviations_OB = parameters[sizes.num_outputs : 2 * sizes.num_outputs]
        self.deviations_OB = deviations_OB if sizes.has_deviations else None
        self._by_state: StateDeviations | None = None
        if sizes.explores_by_state:
            features_HB = parameters[2 * sizes.num_outputs :]
            self._by_state = StateDeviations(self._actor_top_HB, out_OB=deviations_OB, out_HB=features_HB)
        self.values_1B = empty(1, num_rows)
        self.parameters, self.values = parameters.t(), self.values_1B[0]
        self._activate, self._differentiate = TORCH_ACTIVATIONS[activation]
        self._numpy_activate = NUMPY_ACTIVATIONS[activation]
        self._numpy: _NumpyViews | None = None
        self._back: _WayBack | None = None

    def forward(self, obs: Tensor, weights: Weights) -> None:
        """Compute outputs and values of observations [B, in]; call it where autograd is off."""
        x = obs.expand(self.num_networks, -1, -1)
        for k, hidden in enumerate(self.hidden):
            torch.baddbmm(weights[2 * k + 1], x, weights[2 * k], out=hidden)
            self._activate(hidden)
            x = hidden
        actor, actor_bias, critic, critic_bias, *deviations = weights[2 * len(self.hidden) :]
        torch.addmm(actor_bias.unsqueeze(1), actor, self._actor_top_HB, out=self.outputs_OB)
        torch.addmm(critic_bias.unsqueeze(1), critic, self._critic_top_HB, out=self.values_1B)
        if self._by_state is not None:
            self._by_state.forward(deviations[0])
        elif self.deviations_OB is not None:
            self.deviations_OB.copy_(deviations[0].unsqueeze(1))

    def forward_small(self, obs: NDArray[Any], weights: Sequence[NDArray[Any]]) -> None:
        """Do the same in numpy."""
        views = self._numpy
        if views is None:
            views = self._numpy = _NumpyViews(self)
        x = obs
        for k, hidden in enumerate(views.hidden):
            np.matmul(x, weights[2 * k], hidden)
            np.add(hidden, weights[2 * k + 1], hidden)
            self._numpy_activate(hidden)
            x = hidden
        actor, actor_bias, critic, critic_bias, *deviations = weights[2 * len(self.hidden) :]
        np.dot(actor, views.actor_top_HB, views.outputs_OB)
        np.add(views.outputs_OB, actor_bias, views.outputs_OB)
        np.dot(critic, views.critic_top_HB, views.values_1B)
        np.add(views.values_1B, critic_bias, views.values_1B)
        if self._by_state is not None:
            self._by_state.forward_small(deviations[0])
        elif views.deviations_OB is not None:
            np.copyto(views.deviations_OB, deviations[0])

    def backward(
        self,
        obs: Tensor,
        weights: Weights,
        parameters_grad: Tensor | None,
        values_grad: Tensor | None,
        out: Sequence[Tensor | None],
    ) -> list[Tensor]:
        """Return the gradients of the weights, written into ``out`` where it has a tensor; autograd must be off."""
        if self._back is None:
            self._back = _WayBack(self.hidden)
        back = self._back
        gradients = self._last_layers_back(back, weights, parameters_grad, values_grad, out)
        for k in reversed(range(len(self.hidden))):
            here = back.gradients[k]
            self._differentiate(here, self.hidden[k], grad_input=here)
            before = back.hidden_SHB[k - 1] if k else obs.t().expand(self.num_networks, -1, -1)
            gradients.append(torch.sum(here, 1, keepdim=True, out=out[2 * k + 1]))
            gradients.append(torch.bmm(before, here, out=out[2 * k]))
            if k:
                torch.bmm(here, weights[2 * k].transpose(1, 2), out=back.gradients[k - 1])
        gradients.reverse()
        return gradients

    def obs_gradient(self, weights: Weights) -> Tensor:
        """Return the gradient of the observations [B, in] after ``backward``."""
        assert self._back is not None
        return torch.bmm(self._back.gradients[0], weights[0].transpose(1, 2)).sum(0)

    def _last_layers_back(
        self,
        back: _WayBack,
        weights: Weights,
        parameters_grad: Tensor | None,
        values_grad: Tensor | None,
        out: Sequence[Tensor | None],
    ) -> list[Tensor]:
        first = 2 * len(self.hidden)
        actor, critic = weights[first], weights[first + 2]
        parameters_grad = torch.zeros_like(self.parameters) if parameters_grad is None else parameters_grad
        values_grad_1B = (torch.zeros_like(self.values) if values_grad is None else values_grad).unsqueeze(0)
        outputs_grad = parameters_grad if self.deviations_OB is None else parameters_grad[:, : actor.shape[0]]
        torch.mm(outputs_grad, actor, out=back.actor_top)
        if self.num_networks == 1:
            torch.addmm(back.actor_top, values_grad_1B.t(), critic, out=back.actor_top)
        else:
            torch.mm(values_grad_1B.t(), critic, out=back.critic_top)
        # In the reverse order of the weights, as the way back meets them.
        gradients = [
            torch.sum(values_grad_1B, 1, out=out[first + 3]),
            torch.mm(values_grad_1B, self._critic_top, out=out[first + 2]),
            torch.sum(outputs_grad, 0, out=out[first + 1]),
            torch.mm(outputs_grad.t(), self._actor_top, out=out[first]),
        ]
        if self.deviations_OB is not None:
            deviations_grad = parameters_grad[:, actor.shape[0] : 2 * actor.shape[0]]
            gradients.insert(0, self._deviations_back(deviations_grad, out[first + 4]))
        return gradients

    def _deviations_back(self, deviations_grad: Tensor, out: Tensor | None) -> Tensor:
        if self._by_state is not None:
            return self._by_state.gradient(deviations_grad, out)
        return torch.sum(deviations_grad, 0, out=out)


class _WayBack:
    """The gradients of a pass's hidden layers, and views of both."""

    def __init__(self, hidden: Sequence[Tensor]) -> None:
        self.gradients = [torch.empty_like(layer) for layer in hidden]
        self.actor_top, self.critic_top = self.gradients[-1][0], self.gradients[-1][-1]
        self.hidden_SHB = [layer.transpose(1, 2) for layer in hidden[:-1]]


class _NumpyViews:
    """A pass's memory as numpy sees it."""

    def __init__(self, memory: Pass) -> None:
        self.hidden = [hidden.numpy() for hidden in memory.hidden]
        self.actor_top_HB, self.critic_top_HB = self.hidden[-1][0].T, self.hidden[-1][-1].T
        self.outputs_OB, self.values_1B = memory.outputs_OB.numpy(), memory.values_1B.numpy()
        self.deviations_OB = None if memory.deviations_OB is None else memory.deviations_OB.numpy()


class WeightViews:
    """Weights as numpy sees them, found again whenever a weight has moved in memory.

    An optimizer may move all parameters into one buffer after this was made. The old memory is kept as long as its
    views are, so a pointer that has not changed always means the same memory.
    """

    def __init__(self) -> None:
        self._pointers: list[int] = []
        self._views: list[NDArray[Any]] = []

    def __reduce__(self) -> tuple[Any, ...]:
        # A copied network has weights of its own, and finds them itself.
        return WeightViews, ()

    def of(self, weights: Weights) -> list[NDArray[Any]]:
        """Return a view of each weight; those of one axis, which belong to the last layers, as columns."""
        pointers = [weight.data_ptr() for weight in weights]
        if pointers != self._pointers:
            views = [weight.detach().numpy() for weight in weights]
            self._views = [view[:, np.newaxis] if view.ndim == 1 else view for view in views]
            self._pointers = pointers
        return self._views


class Passes:
    """Passes kept for reuse, by number of rows: taken, used and put back.

    Memory fresh from the system costs more to touch than a layer of a small network costs to compute.
    """

    def __init__(self, sizes: StackSizes, activation: Activation) -> None:
        self._sizes = sizes
        self._activation: Activation = activation
        self._kept: dict[int, list[Pass]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        # A copied network, or one in another process, starts with no memory of its own.
        return Passes, (self._sizes, self._activation)

    def take(self, num_rows: int, like: Tensor) -> Pass:
        """Return memory for so many rows, in the dtype and on the device of a weight."""
        kept = self._kept.get(num_rows)
        while kept:
            memory = kept.pop()
            if memory.values.dtype == like.dtype and memory.values.device == like.device:
                return memory
        # What is made in inference mode may not be written to outside of it.
        with torch.inference_mode(False), torch.no_grad():
            return Pass(self._sizes, self._activation, num_rows, like)

    def keep(self, num_rows: int, like: Tensor) -> Pass:
        """Return the same memory for as many rows each time."""
        kept = self._kept.get(num_rows)
        if kept and kept[0].values.dtype is like.dtype and kept[0].values.device == like.device:
            return kept[0]
        self._kept.pop(num_rows, None)
        memory = self.take(num_rows, like)
        self.put_back(memory)
        return memory

    def put_back(self, memory: Pass) -> None:
        """Let the memory be taken again."""
        if memory.num_rows not in self._kept and len(self._kept) >= MOST_SIZES_KEPT:
            # Odd sizes come from rows that are left over; forgetting all is simpler than ranking them.
            self._kept.clear()
        kept = self._kept.setdefault(memory.num_rows, [])
        if len(kept) < MOST_KEPT_PER_SIZE:
            kept.append(memory)


def _numpy_tanh(x: NDArray[Any]) -> None:
    np.tanh(x, x)


def _numpy_relu(x: NDArray[Any]) -> None:
    np.maximum(x, 0, out=x)


def _relu_back(grad: Tensor, result: Tensor, *, grad_input: Tensor) -> Tensor:
    return torch.ops.aten.threshold_backward.grad_input(grad, result, 0, grad_input=grad_input)


NUMPY_ACTIVATIONS: dict[str, Callable[[NDArray[Any]], None]] = {"tanh": _numpy_tanh, "relu": _numpy_relu}
TORCH_ACTIVATIONS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[..., Tensor]]] = {
    "tanh": (torch.tanh_, torch.ops.aten.tanh_backward.grad_input),
    "relu": (torch.relu_, _relu_back),
}
