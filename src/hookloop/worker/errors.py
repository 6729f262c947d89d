"""What can go wrong with a rollout worker."""

from __future__ import annotations

from hookloop.errors import HookloopError


class WorkerError(HookloopError, RuntimeError):
    """A rollout worker cannot do what it is asked to."""


class NoWeightsError(WorkerError):
    """There are no weights to act with, and a worker never acts without."""
