"""What gradients look like, now and then."""

from __future__ import annotations

import logging
import math
from typing import Any

from hookloop.core import HookContext, Schedule
from hookloop.hooks.finite import named_gradients

log = logging.getLogger("hookloop.hooks.gradient_stats")

Live = Any
STATISTICS = ("mean", "variance", "norm")


class GradientStatsHook:
    """Log mean, variance and L2 norm of the gradients, over all and per parameter, before they are clipped.

    The figures over all are in ``ctx.state.gradient_stats`` too. What is not finite is left out of the metrics and
    counted as ``grad/not_finite``. Nothing is logged where there are no gradients: no figure is zero by mistake.

    Args:
        schedule: When to look: a schedule, or a text such as "every 10 epochs". In between it costs nothing.
        per_parameter: Whether to log each parameter's figures too.
    """

    on_error = "disable"

    def __init__(self, schedule: Schedule | str = "every 100 optimizer_steps", per_parameter: bool = True) -> None:
        self.schedule = schedule
        self.per_parameter = per_parameter
        self._has_warned = False

    def on_gradients(self, ctx: HookContext) -> None:
        """Look at the gradients."""
        flat = _flat_gradients(ctx.optimizer)
        parts = [(name, gradient) for name, gradient in named_gradients(ctx.model) if _is_part_of(gradient, flat)]
        if flat is None and not parts:
            self._warn_once()
            return
        figures = _statistics([gradient for _, gradient in parts] if flat is None else [flat])
        sizes = [gradient.numel() for _, gradient in parts] if flat is None else [flat.numel()]
        metrics = {f"grad/{name}": value for name, value in _joined(figures, sizes).items()}
        if self.per_parameter and parts:
            own = figures if flat is None else _statistics([gradient for _, gradient in parts])
            for (parameter, _), values in zip(parts, own, strict=True):
                metrics.update({f"grad/{parameter}/{name}": value for name, value in _named(values).items()})
        finite = {name: value for name, value in metrics.items() if math.isfinite(value)}
        ctx.state.gradient_stats = {name: finite[f"grad/{name}"] for name in STATISTICS if f"grad/{name}" in finite}
        ctx.log({**finite, "grad/not_finite": len(metrics) - len(finite)})

    def _warn_once(self) -> None:
        if not self._has_warned:
            self._has_warned = True
            log.warning("there are no gradients to look at: the context has no model, or its parameters have none")


def _flat_gradients(optimizer: Live) -> Live | None:
    """Return the one tensor of an optimizer that keeps all gradients in one; None for others."""
    flat: Live = getattr(optimizer, "gradients", None)
    return flat.detach() if hasattr(flat, "untyped_storage") else None


def _is_part_of(gradient: Live, flat: Live | None) -> bool:
    """Tell whether a parameter's gradient is the one that is stepped along, and not a forgotten one beside it."""
    return flat is None or gradient.untyped_storage().data_ptr() == flat.untyped_storage().data_ptr()


def _statistics(gradients: list[Live]) -> list[tuple[float, float, float]]:
    """Return mean, variance and norm of each gradient; the device is read from once."""
    import torch  # here and not above: naming a hook should not cost the import

    rows: list[Live] = []
    for gradient in gradients:
        values = gradient.detach().float()
        variance, mean = torch.var_mean(values, correction=0)
        rows.append(torch.stack((mean, variance, torch.linalg.vector_norm(values))))
    return [(mean, variance, norm) for mean, variance, norm in torch.stack(rows).tolist()]


def _joined(figures: list[tuple[float, float, float]], sizes: list[int]) -> dict[str, float]:
    """Return the figures of all gradients together, from those of each."""
    count = sum(sizes)
    if len(figures) == 1 or not count:
        return _named(figures[0])
    mean = sum(size * each[0] for size, each in zip(sizes, figures, strict=True)) / count
    spread = sum(size * (each[1] + (each[0] - mean) ** 2) for size, each in zip(sizes, figures, strict=True))
    return _named((mean, spread / count, math.sqrt(sum(each[2] ** 2 for each in figures))))


def _named(values: tuple[float, float, float]) -> dict[str, float]:
    return dict(zip(STATISTICS, values, strict=True))
