"""Pools of workers that compute pure tasks: in the calling process, in processes of this machine, or on many."""

from hookloop.pools.errors import NoWorkersError, PoolError, PoolUsageError, TaskFailedError
from hookloop.pools.inline import InlinePool
from hookloop.pools.protocol import MakePerformer, Performer, PoolHealth, Result, Task, TaskKey, WorkerPool, gather

__all__ = [
    "InlinePool",
    "MakePerformer",
    "NoWorkersError",
    "Performer",
    "PoolError",
    "PoolHealth",
    "PoolUsageError",
    "Result",
    "Task",
    "TaskFailedError",
    "TaskKey",
    "WorkerPool",
    "gather",
]
