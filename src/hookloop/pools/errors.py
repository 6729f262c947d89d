"""What can go wrong with a pool."""

from __future__ import annotations

from hookloop.errors import HookloopError
from hookloop.pools.protocol import TaskKey


class PoolError(HookloopError):
    """Something about a pool of workers is wrong."""


class PoolUsageError(PoolError, ValueError):
    """A pool was asked for what it cannot do."""


class TaskFailedError(PoolError, RuntimeError):
    """A task was given up: it failed in, or ended, several workers one after the other.

    Attributes:
        key: Of the task.
    """

    def __init__(self, message: str, *, key: TaskKey) -> None:
        super().__init__(message)
        self.key = key


class NoWorkersError(PoolError, RuntimeError):
    """No worker could be kept alive."""
