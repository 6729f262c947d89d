"""What can go wrong with a pool."""

from __future__ import annotations

from hookloop.errors import HookloopError


class PoolError(HookloopError):
    """Something about a pool of workers is wrong."""


class PoolUsageError(PoolError, ValueError):
    """A pool was asked for what it cannot do."""


class TaskFailedError(PoolError):
    """A task was given up: it failed in, or ended, several workers one after the other."""


class NoWorkersError(PoolError):
    """No worker could be kept alive."""
