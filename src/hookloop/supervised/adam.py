"""Torch's fused Adam without the long way to its kernel, and without an import of the compiler."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer


class FusedAdam(torch.optim.Adam):
    """``torch.optim.Adam(fused=True)``, to the bit; with decoupled decay it is ``torch.optim.AdamW(fused=True)``.

    Args:
        parameters: What to step; all of one device and one type, which is not checked again at every step.
        settings: Of ``torch.optim.Adam``, without ``amsgrad`` and ``maximize``.
    """

    # These are marked as not for the compiler, and the mark imports it when one is first called: one to two seconds at
    # every start.
    add_param_group: Any = inspect.unwrap(Optimizer.add_param_group)
    load_state_dict: Any = inspect.unwrap(Optimizer.load_state_dict)
    state_dict: Any = inspect.unwrap(Optimizer.state_dict)
    zero_grad: Any = inspect.unwrap(Optimizer.zero_grad)

    def __init__(self, parameters: list[Any], **settings: Any) -> None:
        super().__init__(parameters, fused=True, **settings)
        self._step_supports_amp_scaling = False  # a scaler is to leave out the step itself

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]  # none is taken
        """Take one step along the gradients as they are."""
        for group in self.param_groups:
            parameters: list[Tensor] = []
            gradients: list[Tensor] = []
            first: list[Tensor] = []
            second: list[Tensor] = []
            steps: list[Tensor] = []
            self._init_group(group, parameters, gradients, first, second, [], steps)
            if not parameters:
                continue
            kernel = torch._fused_adamw_ if group["decoupled_weight_decay"] else torch._fused_adam_  # pyright: ignore[reportPrivateImportUsage]
            torch._foreach_add_(steps, 1)  # pyright: ignore[reportPrivateImportUsage]  # as torch does
            beta1, beta2 = group["betas"]
            kernel(
                parameters, gradients, first, second, [], steps,
                lr=group["lr"], beta1=beta1, beta2=beta2, weight_decay=group["weight_decay"], eps=group["eps"],
                amsgrad=False, maximize=False, grad_scale=None, found_inf=None,
            )  # fmt: skip
