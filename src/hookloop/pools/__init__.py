"""Pools of workers that compute pure tasks: in the calling process, in processes of this machine, or on many."""

from hookloop.pools.choice import TaskCosts, WorkersChoice, choose_workers
from hookloop.pools.errors import NoWorkersError, PoolError, PoolUsageError, TaskFailedError
from hookloop.pools.inline import InlinePool
from hookloop.pools.making import make_pool
from hookloop.pools.protocol import MakePerformer, Performer, PoolHealth, Result, Task, TaskKey, WorkerPool, gather
from hookloop.pools.settings import PoolSettings

__all__ = [
    "InlinePool",
    "MakePerformer",
    "NoWorkersError",
    "Performer",
    "PoolError",
    "PoolHealth",
    "PoolSettings",
    "PoolUsageError",
    "Result",
    "Task",
    "TaskCosts",
    "TaskFailedError",
    "TaskKey",
    "WorkerPool",
    "WorkersChoice",
    "choose_workers",
    "gather",
    "make_pool",
]
