"""A word when a metric is suddenly worse."""

from __future__ import annotations

import math

from hookloop.core import HookContext
from hookloop.hooks.telling import tell
from hookloop.supervised.engine.alerts import AlertLimits, find_alerts


class AlertHook:
    """Tell when a loss rises, an accuracy falls or gradients grow more than they should within an epoch.

    Each alert is a warning in the log, an event of the run, and a metric: ``alert/loss_spike``,
    ``alert/accuracy_drop``, ``alert/large_gradients``, which count those of the epoch.

    Args:
        loss_spike: Share of its last value by which a loss may rise.
        accuracy_drop: How much an accuracy may fall; 0.05 is five points.
        gradient_norm: What the norm of the gradients may be.
    """

    name = "alert"
    on_error = "disable"
    saved = ("before",)

    def __init__(self, loss_spike: float = 0.2, accuracy_drop: float = 0.05, gradient_norm: float = 10.0) -> None:
        self.limits = AlertLimits(loss_spike, accuracy_drop, gradient_norm)
        self.before: dict[str, float] = {}

    def on_epoch_end(self, ctx: HookContext) -> None:
        """Compare the metrics with the last ones."""
        now = {name: float(value) for name, value in ctx.metrics.items() if isinstance(value, int | float)}
        counts: dict[str, int] = {}
        for alert in find_alerts(self.before, now, self.limits):
            counts[f"alert/{alert.kind}"] = counts.get(f"alert/{alert.kind}", 0) + 1
            tell(ctx, "alert", str(alert))
        # What was not measured this time is compared with its last value the next time.
        self.before.update({name: value for name, value in now.items() if math.isfinite(value)})
        ctx.log(counts)
