"""A trainer's weights, offered to rollout workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from hookloop.core import HookContext
from hookloop.errors import RegistrationError


class Server(Protocol):
    """The trainer's end of a way that weights take, such as ``hookloop.worker.SharedWeightsServer``."""

    def serve(self, version: int, tensors: Mapping[str, Any]) -> None:
        """Offer weights; they are copied before this returns."""
        ...


class ServeWeightsHook:
    """Offer the weights of the model to workers when training starts, and after each epoch; or as a schedule says.

    Args:
        server: Who offers them.
    """

    name = "serve_weights"
    stage = "publish"

    def __init__(self, server: Server) -> None:
        self._server = server

    def on_training_start(self, ctx: HookContext) -> None:
        """Offer what training begins with, or goes on from: workers need not wait for the first epoch."""
        self._serve(ctx)

    def on_epoch_end(self, ctx: HookContext) -> None:
        """Offer what was learned."""
        self._serve(ctx)

    def _serve(self, ctx: HookContext) -> None:
        if ctx.model is None:
            raise RegistrationError("ServeWeightsHook needs a trainer with a model; this one has none.")
        self._server.serve(ctx.state.clocks.policy_version, ctx.model.state_dict())
