"""What a worker has done: since its run began, and apart from it since this process began.

A count that begins anew with every process must never be charted as the run's: the curve would fall at each restart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

WORKER_STEPS = "worker_steps"
"""The clock of ``step_end`` in a worker: batches of rollouts that were generated."""


@dataclass(slots=True)
class WorkerCounts:
    """Counts of one span of time."""

    steps: int = 0
    rollouts: int = 0
    env_steps: int = 0
    """Steps of environments, or tokens."""
    empty_batches: int = 0
    """Times a source came back with nothing; such a step is not counted, and no hook runs."""
    weight_updates: int = 0
    steps_without_news: int = 0
    """Steps for which no newer weights had come."""

    def add(self, **amounts: int) -> None:
        """Count."""
        for name, amount in amounts.items():
            setattr(self, name, getattr(self, name) + amount)


@dataclass(slots=True)
class Counters:
    """The same counts over the whole run, which are saved, and over this attempt, which are not."""

    run: WorkerCounts = field(default_factory=WorkerCounts)
    attempt: WorkerCounts = field(default_factory=WorkerCounts)

    def add(self, **amounts: int) -> None:
        """Count in both."""
        self.run.add(**amounts)
        self.attempt.add(**amounts)

    def metrics(self) -> dict[str, float]:
        """Return ``worker/...``, which only grow, and ``attempt/...``, which begin anew with every process."""
        found = {f"worker/{name}": float(count) for name, count in asdict(self.run).items()}
        return {**found, **{f"attempt/{name}": float(count) for name, count in asdict(self.attempt).items()}}

    def state_dict(self) -> dict[str, int]:
        """Return the counts of the run."""
        return asdict(self.run)

    def load_state_dict(self, saved: Mapping[str, int]) -> None:
        """Go on counting for the run; this attempt begins at 0."""
        self.run = WorkerCounts(**saved)
        self.attempt = WorkerCounts()
