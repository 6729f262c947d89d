"""A source that is a list, and a tracker that can be told to fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hookloop.trackers import EpochRows, TrackedRun

RUN = TrackedRun("run-1", "first", recipe="toy", seed=7, config={"a": {"b": 1}}, tags=("x",), created=1_000_000.0)


def point(epoch: int, key: str = "loss", value: float | None = None, /, **clocks: Any) -> dict[str, Any]:
    """Return a point of an epoch of ten steps, as the statistics give it."""
    return {
        "after_epoch": epoch - 1,
        "epoch": epoch,
        "env_steps": epoch * 10,
        "optimizer_steps": epoch * 2,
        "seconds": epoch / 2,
        "hook": "",
        "event": "epoch_end",
        "key": key,
        "value": float(epoch) if value is None else value,
        **clocks,
    }


def epochs(*numbers: int) -> list[EpochRows]:
    """Return epochs of three points at two clocks: the last one comes in two readings."""
    return [
        EpochRows(
            (point(number, "lr", epoch=number - 1), point(number, "loss"), point(number, "loss", number + 0.5)), number
        )
        for number in numbers
    ]


class ListSource:
    """Metrics in memory, and the cursors that were saved."""

    def __init__(self, until: int = 0, saved: int = 0) -> None:
        self.rows = [point(epoch, key) for epoch in range(1, until + 1) for key in ("loss", "lr")]
        self.saved = [saved]
        self.status = "running"
        self.is_closed = False
        self.failures = 0

    def add(self, *numbers: int) -> None:
        """Complete epochs."""
        self.rows += [point(number, key) for number in numbers for key in ("loss", "lr")]

    def run(self) -> TrackedRun:
        return TrackedRun("run-1", "first", status=self.status)

    def cursor(self) -> int:
        return self.saved[-1]

    def rows_after(self, cursor: int, limit: int) -> tuple[list[dict[str, Any]], int]:
        until = max(
            [cursor, *(row["after_epoch"] + 1 for row in self.rows if row["after_epoch"] < cursor + limit // 2)]
        )
        return [row for row in self.rows if cursor <= row["after_epoch"] < until], until

    def save_cursor(self, cursor: int) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError("the disk is full")
        self.saved.append(cursor)

    def close(self) -> None:
        self.is_closed = True


class ListTracker:
    """Keeps what it is told; ``troubles`` are raised one after another, before or after an epoch is taken."""

    def __init__(self, *, tells: bool = True) -> None:
        self.tells = tells
        self.held: list[tuple[int, str, float]] = []
        self.cursor = 0
        self.calls: list[str] = []
        self.before: list[Exception] = []
        self.after: list[Exception] = []
        self.reason: str | None = None

    def open(self, run: TrackedRun) -> int | None:
        self.calls.append("open")
        return self.cursor if self.tells else None

    def log(self, epochs: Sequence[EpochRows]) -> None:
        self.calls.append("log")
        if self.before:
            raise self.before.pop(0)
        for epoch in epochs:
            self.held += [(row["epoch"], row["key"], row["value"]) for row in epoch.rows]
            self.cursor = epoch.cursor
        if self.after:
            raise self.after.pop(0)

    def finish(self, outcome: str) -> None:
        self.calls.append(f"finish {outcome}")

    def close(self) -> None:
        self.calls.append("close")

    def stop_reason(self) -> str | None:
        self.calls.append("stop_reason")
        return self.reason


def expected(until: int) -> list[tuple[int, str, float]]:
    """Return what a tracker should hold after so many epochs of a ``ListSource``."""
    return [(epoch, key, float(epoch)) for epoch in range(1, until + 1) for key in ("loss", "lr")]
