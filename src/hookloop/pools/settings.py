"""What can be set for every engine with workers."""

from __future__ import annotations

from dataclasses import dataclass, fields

from hookloop.pools.errors import PoolUsageError


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """How a pool treats its workers; None turns a rule off."""

    task_seconds_limit: float | None = 300.0
    """A worker that takes longer for one task is taken to hang, and is ended."""
    start_seconds_limit: float | None = 120.0
    """A worker that takes longer to start is, too."""
    copy_after_seconds: float | None = None
    """A task that takes longer is given to an idle worker, too; the first result counts."""
    tasks_per_worker: int | None = None
    """After so many tasks a worker is replaced, against leaks."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None and value <= 0:
                raise PoolUsageError(f"{each.name} must be above 0, got {value}; None turns it off.")
