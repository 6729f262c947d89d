"""A file of strict JSON, one line for the metrics of each reading: always there, needs nothing, read by anything."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from hookloop.errors import TrackerError
from hookloop.trackers.base import EpochRows, TrackedRun, readings

FILE_NAME = "metrics.jsonl"

_BLOCK_BYTES = 1 << 16
# The last line of each epoch ends so; a metric cannot look like it, for the quotes in its name would be escaped.
_MARK = re.compile(rb'\}, "cursor": (-?\d{1,18})\}\n')


class JsonlTracker:
    """Appends to a file; what a kill has left of an unfinished epoch is cut off when it is opened again.

    Args:
        folder: The run's folder.
        file: The name of the file in it.
    """

    def __init__(self, folder: Path, file: str = FILE_NAME) -> None:
        if Path(file).name != file:
            raise TrackerError(
                f"The file of the jsonl tracker is in the run's folder; give its bare name, got {file!r}."
            )
        self.path = folder / file
        self._file: BinaryIO | None = None

    def open(self, run: TrackedRun) -> int:
        """Open the file and return the cursor of its last whole epoch."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = file = self.path.open("a+b")
        end, cursor = _last_mark(file)
        if end == 0:
            _require_ours(file, self.path)
        file.truncate(end)
        return cursor

    def log(self, epochs: Sequence[EpochRows]) -> None:
        """Write the epochs and wait for the disk."""
        if self._file is None:
            raise TrackerError(f"{self.path} is not open; call open first.")
        self._file.write(b"".join(line for epoch in epochs for line in _lines(epoch)))
        self._file.flush()
        os.fsync(self._file.fileno())

    def finish(self, outcome: str) -> None:
        """Write nothing: every line is a reading."""

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            file, self._file = self._file, None
            file.close()


def _lines(epoch: EpochRows) -> list[bytes]:
    found = readings(epoch.rows)
    lines: list[bytes] = []
    for number, reading in enumerate(found, 1):
        line: dict[str, object] = {
            "epoch": reading.epoch,
            "env_steps": reading.env_steps,
            "optimizer_steps": reading.optimizer_steps,
            "seconds": reading.seconds,
            "metrics": _strict(reading.metrics),
        }
        if number == len(found):
            line["cursor"] = epoch.cursor
        lines.append(json.dumps(line, allow_nan=False).encode() + b"\n")
    return lines


def _strict(metrics: Mapping[str, float]) -> dict[str, float | str]:
    """Return metrics as JSON can say them: what is not finite as the text nan, inf or -inf."""
    return {key: value if math.isfinite(value) else str(float(value)) for key, value in metrics.items()}


def _last_mark(file: BinaryIO) -> tuple[int, int]:
    """Return where the last whole epoch ends, and its cursor."""
    begin, tail = file.seek(0, os.SEEK_END), b""
    while begin > 0:
        size = min(_BLOCK_BYTES, begin)
        begin -= size
        file.seek(begin)
        tail = file.read(size) + tail
        marks = list(_MARK.finditer(tail))
        if marks:
            return begin + marks[-1].end(), int(marks[-1][1])
    return 0, 0


def _require_ours(file: BinaryIO, path: Path) -> None:
    """Refuse a file that somebody else wrote, before it is cut off."""
    file.seek(0)
    start, ours = file.read(10), b'{"epoch": '
    if start != ours[: len(start)]:
        raise TrackerError(f"{path} holds something other than the metrics of a run; move it away.")
