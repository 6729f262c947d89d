"""One flat buffer for all parameters, so that clipping, stepping and zeroing are one operation each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from hookloop.errors import HookStateError

Plain = Any


class FlatAdam:
    """Adam over a module's parameters, laid out as one tensor; gradients are views of a second one.

    Args:
        module: Its parameters move into the flat buffer and keep their names and shapes.
        learning_rate: The step size; may be changed between steps.
        betas: Adam's decay rates.
        eps: Adam's epsilon.
        weight_decay: Added to the gradient, as in Adam.
        max_grad_norm: Gradients are scaled down to this norm; None leaves them alone.

    ``wire`` is the gradients' memory with two numbers behind them: what several learners average in one go.
    """

    def __init__(
        self,
        module: nn.Module,
        *,
        learning_rate: float = 2.5e-4,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-5,
        weight_decay: float = 0.0,
        max_grad_norm: float | None = 0.5,
    ) -> None:
        self.learning_rate = learning_rate
        self.max_grad_norm = max_grad_norm
        self._names = [name for name, parameter in module.named_parameters() if parameter.requires_grad]
        self.flat, self.gradients, self.wire = _flatten(module)
        self._betas, self._eps, self._weight_decay = betas, eps, weight_decay
        self._first = torch.zeros_like(self.gradients)
        self._second = torch.zeros_like(self.gradients)
        self._steps = torch.zeros((), dtype=torch.float32, device=self.flat.device)
        self._norm: Tensor | None = None
        self._normed_version = -1

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All that a step changes: parameters, both moments, and the count of steps."""
        return self.flat.data, self._first, self._second, self._steps

    def zero_grad(self) -> None:
        """Set all gradients to zero."""
        self._norm = None
        self.gradients.zero_()

    def gradient_norm(self) -> Tensor:
        """Return the norm of all gradients; who asks before they are clipped spares ``clip`` the work."""
        norm = self._norm
        if norm is None or self._normed_version != self.gradients._version:
            norm = self._norm = torch.linalg.vector_norm(self.gradients)
            self._normed_version = self.gradients._version
        return norm

    def clip(self) -> Tensor | None:
        """Scale the gradients down to the largest norm allowed and return the norm they had."""
        if self.max_grad_norm is None:
            return None
        norm, self._norm = self.gradient_norm(), None
        self.gradients.mul_((self.max_grad_norm / (norm + 1e-6)).clamp_(max=1.0))
        return norm

    @torch.no_grad()
    def step(self) -> None:
        """Take one step along the gradients as they are."""
        self._steps += 1
        # The kernel that torch.optim.Adam(fused=True) ends in. Called directly it takes a quarter of the time, and
        # the second that building a torch optimizer spends on importing the compiler is not spent.
        torch._fused_adam_(  # pyright: ignore[reportPrivateImportUsage]  # see above
            [self.flat], [self.gradients], [self._first], [self._second], [], [self._steps],
            lr=self.learning_rate, beta1=self._betas[0], beta2=self._betas[1], weight_decay=self._weight_decay,
            eps=self._eps, amsgrad=False, maximize=False, grad_scale=None, found_inf=None,
        )  # fmt: skip

    def state_dict(self) -> dict[str, Plain]:
        """Return the moments, which are the live ones, and the settings."""
        return {
            "parameters": list(self._names),
            "learning_rate": self.learning_rate,
            "first": self._first,
            "second": self._second,
            "steps": self._steps,
        }

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Restore the moments and the learning rate."""
        if list(saved["parameters"]) != self._names:
            missing = sorted(set(self._names) ^ set(saved["parameters"]))
            raise HookStateError(f"The saved optimizer belongs to another network: {', '.join(missing[:5])} differ.")
        self.learning_rate = saved["learning_rate"]
        self._first.copy_(saved["first"])
        self._second.copy_(saved["second"])
        self._steps.copy_(saved["steps"])


def _flatten(module: nn.Module) -> tuple[nn.Parameter, Tensor, Tensor]:
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    kinds = {(parameter.dtype, parameter.device) for parameter in parameters}
    if len(kinds) != 1:
        raise HookStateError(
            f"The policy's parameters must share one dtype and device, got {', '.join(sorted(map(str, kinds)))}."
        )
    flat = nn.Parameter(torch.cat([parameter.detach().reshape(-1) for parameter in parameters]))
    wire = torch.zeros(flat.numel() + 2, dtype=flat.dtype, device=flat.device)
    gradients = wire[:-2]
    flat.grad = gradients
    start = 0
    for parameter in parameters:
        end = start + parameter.numel()
        parameter.data = flat.data[start:end].view_as(parameter)
        parameter.grad = gradients[start:end].view_as(parameter)
        start = end
    return flat, gradients, wire
