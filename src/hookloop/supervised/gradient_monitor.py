"""A look at the gradients of each step, before it is taken."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from hookloop.core import HookContext
from hookloop.errors import ConfigError, NonFiniteError
from hookloop.supervised.accumulator import GradientAccumulator, total_norm

MOST_NAMES = 5


@dataclass(frozen=True, slots=True)
class GradientHealth:
    """What the gradients of one step look like, by layer."""

    norm: float
    nan: tuple[str, ...]
    infinite: tuple[str, ...]
    vanishing: tuple[str, ...]
    exploding: tuple[str, ...]

    @property
    def is_finite(self) -> bool:
        """Whether a step along them leaves the weights finite."""
        return not self.nan and not self.infinite

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is wrong with any layer."""
        return self.is_finite and not self.vanishing and not self.exploding

    def __str__(self) -> str:
        found = {"NaN": self.nan, "infinite": self.infinite, "vanishing": self.vanishing, "exploding": self.exploding}
        parts = [f"{what} in {_few(layers)}" for what, layers in found.items() if layers]
        return "; ".join(parts) or "healthy"


class GradientMonitor:
    """Looks at the gradients after backward and unscale: NaN, infinite, vanishing, exploding, by layer.

    No step is taken along gradients that are not finite; several such steps in a row end the run. Vanishing and
    exploding ones are counted and reported.

    Args:
        accumulator: What adds the gradients up, and shares their norm; without it the norm is taken here.
        vanishing: A layer whose norm is below this learns nothing.
        exploding: A norm above this is more than a step should follow.
        halt_after: So many steps in a row with NaN or infinite gradients end the run.
        inspect_every: Optimizer steps between two looks at each single layer.
    """

    name = "gradient_monitor"
    ranks = "all"
    on_error = "raise"
    priority = -1000  # last of its stage: it judges what the other hooks have made of the gradients
    saved = ("bad_steps", "bad_in_a_row", "exploding_steps", "vanishing_steps", "seen_steps")

    def __init__(
        self,
        accumulator: GradientAccumulator | None = None,
        *,
        vanishing: float = 1e-7,
        exploding: float = 10.0,
        halt_after: int = 3,
        inspect_every: int = 100,
    ) -> None:
        if halt_after < 1 or inspect_every < 1:
            raise ConfigError(f"halt_after and inspect_every must be at least 1, got {halt_after} and {inspect_every}.")
        self.bad_steps = self.bad_in_a_row = 0
        self.exploding_steps = self.vanishing_steps = self.seen_steps = 0
        self._accumulator = accumulator
        self._vanishing, self._exploding = vanishing, exploding
        self._halt_after, self._inspect_every = halt_after, inspect_every

    def on_gradients(self, ctx: HookContext) -> dict[str, Any] | None:
        """Look at the gradients; ask that the step is left out if they are not finite."""
        # Reading the norm is a wait for the device, and the price of no step ever being taken along a NaN.
        norm = self._read_norm(ctx.model)
        self.seen_steps += 1
        if not math.isfinite(norm):
            return self._refuse(ctx)
        self.bad_in_a_row = 0
        is_odd = norm > self._exploding or norm < self._vanishing
        if is_odd:
            self.exploding_steps += norm > self._exploding
            self.vanishing_steps += norm < self._vanishing
        if self.seen_steps % self._inspect_every:
            return None
        health = self.check(ctx.model)
        return {
            "norm": norm,
            "exploding_steps": self.exploding_steps,
            "vanishing_steps": self.vanishing_steps,
            "vanishing_layers": len(health.vanishing),
            "exploding_layers": len(health.exploding),
        }

    def check(self, model: nn.Module) -> GradientHealth:
        """Look at each layer's gradient as it is now."""
        named = [(name, each.grad) for name, each in model.named_parameters() if each.grad is not None]
        values = [(name, _values(gradient)) for name, gradient in named]
        norms = torch.stack([torch.linalg.vector_norm(value.float()) for _, value in values]).tolist() if values else []
        nan = tuple(name for name, value in values if bool(torch.isnan(value).any()))
        infinite = tuple(name for name, value in values if bool(torch.isinf(value).any()))
        layers = [(name, norm) for (name, _), norm in zip(values, norms, strict=True) if math.isfinite(norm)]
        return GradientHealth(
            norm=math.sqrt(sum(norm * norm for norm in norms)),
            nan=nan,
            infinite=infinite,
            vanishing=tuple(name for name, norm in layers if norm < self._vanishing),
            exploding=tuple(name for name, norm in layers if norm > self._exploding),
        )

    def _refuse(self, ctx: HookContext) -> dict[str, Any] | None:
        health = self.check(ctx.model)
        if health.is_finite:  # a norm of finite numbers that overflowed
            self.exploding_steps += 1
            return None
        self.bad_steps += 1
        self.bad_in_a_row += 1
        ctx.request_skip()
        if self.bad_in_a_row >= self._halt_after:
            steps = ctx.state.clocks.optimizer_steps
            raise NonFiniteError(
                f"The gradients were not finite {self.bad_in_a_row} times in a row after {steps} optimizer steps: "
                f"{health}. No step was taken along them. Lower the learning rate, check the data for NaN, or clip "
                "with max_grad_norm; then resume from the last checkpoint."
            )
        return {"bad_steps": self.bad_steps}

    def _read_norm(self, model: nn.Module) -> float:
        if self._accumulator is not None:
            return self._accumulator.read_norm()
        return total_norm([each.grad for each in model.parameters() if each.grad is not None]).item()


def _values(gradient: Tensor) -> Tensor:
    return gradient.coalesce().values() if gradient.is_sparse else gradient


def _few(names: tuple[str, ...]) -> str:
    return ", ".join(names[:MOST_NAMES]) + (f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else "")
