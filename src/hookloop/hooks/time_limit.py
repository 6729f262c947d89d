"""A run that ends in time."""

from __future__ import annotations

from hookloop.core import HookContext, Once
from hookloop.errors import RegistrationError


class TimeLimitHook:
    """Ask the run to stop once it has trained for ``limit_seconds``, earlier attempts included."""

    def __init__(self, limit_seconds: float) -> None:
        if isinstance(limit_seconds, bool) or not limit_seconds > 0:
            raise RegistrationError(
                f"A time limit must be above 0 seconds, got {limit_seconds}; leave the hook out instead."
            )
        self.limit_seconds = limit_seconds
        self.schedule = Once(limit_seconds, "seconds")

    def on_minibatch_end(self, ctx: HookContext) -> None:
        """Ask after a minibatch, for workloads with long epochs."""
        self._stop(ctx)

    def on_epoch_end(self, ctx: HookContext) -> None:
        """Ask after an epoch."""
        self._stop(ctx)

    def _stop(self, ctx: HookContext) -> None:
        ctx.request_stop(f"the time limit of {self.limit_seconds:g} s is reached")
