"""Statistics of runs in SQLite or PostgreSQL: one writer per run, readers anywhere, at any time.

The names below are imported when they are first used: SQLAlchemy takes a quarter of a second to import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

_HOMES = {
    "EvaluationTasks": "hookloop.stats.evaluation_tasks",
    "Health": "hookloop.stats.writer",
    "Point": "hookloop.stats.reader",
    "RunStatus": "hookloop.stats.run_status",
    "RunStatusReader": "hookloop.stats.run_status",
    "StatsClient": "hookloop.stats.client",
    "StatsReader": "hookloop.stats.reader",
    "StatsStore": "hookloop.stats.store",
}

__all__ = [
    "EvaluationTasks",
    "Health",
    "Point",
    "RunStatus",
    "RunStatusReader",
    "StatsClient",
    "StatsReader",
    "StatsStore",
]

if TYPE_CHECKING:
    from hookloop.stats.client import StatsClient
    from hookloop.stats.evaluation_tasks import EvaluationTasks
    from hookloop.stats.reader import Point, StatsReader
    from hookloop.stats.run_status import RunStatus, RunStatusReader
    from hookloop.stats.store import StatsStore
    from hookloop.stats.writer import Health


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
