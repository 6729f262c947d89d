"""How hooks tell that something is amiss: in the log, and in the statistics of the run."""

from __future__ import annotations

import logging

from hookloop.core import HookContext

log = logging.getLogger("hookloop.hooks")


def tell(ctx: HookContext, what: str, why: str) -> None:
    """Say that something is amiss, and keep it among the events of the run, if its statistics are kept."""
    log.warning("%s after epoch %d: %s", what, ctx.state.epoch, why)
    client = ctx.services.get("stats_client")
    if client is not None:
        client.log_event(ctx.hook, what, why, ctx.state.clocks)
