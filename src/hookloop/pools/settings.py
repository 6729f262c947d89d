"""What can be set for every engine with workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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

    cpus_per_worker: float = 1.0
    """What a cluster sets aside for a worker."""
    resources: Mapping[str, float] = field(default_factory=dict[str, float])
    """What else it sets aside, by the names that its machines were given."""

    def __post_init__(self) -> None:
        for name in _LIMITS:
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise PoolUsageError(f"{name} must be above 0, got {value}; None turns it off.")
        for name, value in {"cpus_per_worker": self.cpus_per_worker, **self.resources}.items():
            if value < 0:
                raise PoolUsageError(f"A cluster cannot set {value} of {name!r} aside for a worker; give 0 or more.")


_LIMITS = ("task_seconds_limit", "start_seconds_limit", "copy_after_seconds", "tasks_per_worker")
