"""What a tracker is: something outside the run that is told every metric once, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

Plain = Any
Row = Mapping[str, Plain]
"""One point: ``key``, ``value``, ``hook``, ``event`` and the clocks ``epoch``, ``env_steps``, ``optimizer_steps``,
``seconds``."""

CLOCKS = ("epoch", "env_steps", "optimizer_steps")


@dataclass(frozen=True, slots=True)
class TrackedRun:
    """The run that a tracker is told about."""

    run_id: str
    name: str
    recipe: str | None = None
    seed: int | None = None
    config: Mapping[str, Plain] = field(default_factory=dict[str, Plain])
    tags: Sequence[str] = ()
    created: float = 0.0
    """When it began, in seconds since 1970."""
    status: str = "running"
    """``running``, or how it ended."""
    model_parameters: int | None = None
    """The size of the model; None where it is not known."""


@dataclass(frozen=True, slots=True)
class EpochRows:
    """All points of one epoch, in order, and the cursor of a tracker that has them."""

    rows: Sequence[Row]
    cursor: int


class Tracker(Protocol):
    """Takes the metrics of one run. All calls come from one thread, which training never waits for.

    Any call may raise and may take its time. After one that has raised, ``close`` and ``open`` come again, and then
    every epoch after the cursor that ``open`` returned.
    """

    def open(self, run: TrackedRun) -> int | None:
        """Get ready, and return the cursor of the last epoch that is held for good, 0 for none.

        None if that cannot be told. Then what was under way when something failed or died comes again.
        """
        ...

    def log(self, epochs: Sequence[EpochRows]) -> None:
        """Take some epochs; whole, or such that ``open`` can tell."""
        ...

    def finish(self, outcome: str) -> None:
        """Note how the run ended: completed, stopped, interrupted or failed. It may go on later."""
        ...

    def close(self) -> None:
        """Let go of everything, also after a failure; ``open`` may come again."""
        ...


@runtime_checkable
class StopsRuns(Protocol):
    """A tracker by which somebody far away can end the run."""

    def stop_reason(self) -> str | None:
        """Look whether the run is to stop, and say why; None to go on. Asked once a minute at most."""
        ...


class Source(Protocol):
    """Where the metrics of a run come from, and where one tracker's cursor is kept."""

    def run(self) -> TrackedRun:
        """Return what is known about the run."""
        ...

    def cursor(self) -> int:
        """Return the saved cursor, 0 before there is one."""
        ...

    def rows_after(self, cursor: int, limit: int) -> tuple[Sequence[Row], int]:
        """Return the points of whole epochs after a cursor, each with its ``after_epoch``, and the next cursor."""
        ...

    def save_cursor(self, cursor: int) -> None:
        """Remember how far the tracker has come; it is on the disk when this returns."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


@dataclass(frozen=True, slots=True)
class Reading:
    """The metrics that were measured at the same clocks."""

    epoch: int
    env_steps: int
    optimizer_steps: int
    seconds: float
    """The latest at which one of them was measured."""
    metrics: Mapping[str, float]

    @property
    def step(self) -> int:
        """The steps of the run: those of its environments, or of its optimizer where there are none."""
        return self.env_steps or self.optimizer_steps


def readings(rows: Sequence[Row]) -> list[Reading]:
    """Join points of the same clocks, in order; a key that comes twice at the same clocks begins another reading."""
    groups: dict[tuple[int, int, int, int], dict[str, float]] = {}
    seconds: dict[tuple[int, int, int, int], float] = {}
    for row in rows:
        epoch, env_steps, optimizer_steps = (row[name] for name in CLOCKS)
        repeat = 0
        while row["key"] in groups.setdefault((epoch, env_steps, optimizer_steps, repeat), {}):
            repeat += 1
        group = epoch, env_steps, optimizer_steps, repeat
        groups[group][row["key"]] = row["value"]
        seconds[group] = max(row["seconds"], seconds.get(group, 0.0))
    return [Reading(*clocks, seconds[group], metrics) for group, metrics in groups.items() for clocks in (group[:3],)]


def epochs_held(cursor: int) -> int:
    """Return how many epochs a tracker with this cursor has: below 0 it has what came after the last one, too."""
    return cursor if cursor >= 0 else -1 - cursor
