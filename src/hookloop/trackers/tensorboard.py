"""TensorBoard: one event file for a run, however often it is resumed."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

from hookloop.errors import MissingExtraError, TrackerError
from hookloop.storage.atomic import remove_leftovers, write_json
from hookloop.trackers.base import EpochRows, Reading, TrackedRun, readings

Live = Any  # modules of tensorboard, whose classes are made when they are imported

EVENTS_FILE = "events.out.tfevents.0.hookloop"
MARK_FILE = "hookloop.json"


class TensorBoardTracker:
    """Writes scalars whose step is the run's ``env_steps``, or its ``optimizer_steps`` where there are no environments.

    Beside the event file stands how many of its bytes hold whole epochs, and up to which cursor. It is written after
    the events are on the disk; what a kill left beyond is cut off when the file is opened again.

    Args:
        folder: The run's folder.
        subfolder: Where in it; ``tensorboard --logdir`` finds it below the folder of all runs.
    """

    def __init__(self, folder: Path, subfolder: str = "tensorboard") -> None:
        if Path(subfolder).name != subfolder:
            raise TrackerError(f"The subfolder of the tensorboard tracker is a bare name, got {subfolder!r}.")
        if find_spec("tensorboard") is None:
            raise MissingExtraError("The tensorboard tracker", "tensorboard")
        # Now, and not in the thread that writes: there the imports would take their time from training.
        self._messages: Live = import_module("tensorboard.compat.proto.event_pb2")
        self._records: Live = import_module("tensorboard.summary.writer.record_writer")
        self.path = folder / subfolder / EVENTS_FILE
        self._mark = folder / subfolder / MARK_FILE
        self._file: BinaryIO | None = None
        self._created = 0.0

    def open(self, run: TrackedRun) -> int:
        """Open the event file and return the cursor up to which it holds everything."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._created = run.created
        remove_leftovers(self._mark)
        size, cursor = self._marked()
        self._file = self.path.open("ab")
        if self._file.tell() < size:  # deleted or cut by somebody: told from the start
            size = cursor = 0
        self._file.truncate(size)
        if size == 0:
            self._write([self._messages.Event(wall_time=run.created, file_version="brain.Event:2")], 0)
        return cursor

    def log(self, epochs: Sequence[EpochRows]) -> None:
        """Write the epochs, wait for the disk, and mark how far they go."""
        found = [reading for epoch in epochs for reading in readings(epoch.rows)]
        self._write([self._event(reading) for reading in found], epochs[-1].cursor)

    def finish(self, outcome: str) -> None:
        """Write nothing: event files have no end."""

    def close(self) -> None:
        """Close the event file."""
        if self._file is not None:
            file, self._file = self._file, None
            file.close()

    def _event(self, reading: Reading) -> Live:
        # The time is that of the run's own clock: points that come late stand where they were measured.
        event = self._messages.Event(wall_time=self._created + reading.seconds, step=reading.step)
        for key, value in reading.metrics.items():
            event.summary.value.add(tag=key, simple_value=value)
        return event

    def _write(self, events: Sequence[Live], cursor: int) -> None:
        if self._file is None:
            raise TrackerError(f"{self.path} is not open; call open first.")
        records = self._records.RecordWriter(self._file)
        for event in events:
            records.write(event.SerializeToString())
        self._file.flush()
        os.fsync(self._file.fileno())
        write_json(self._mark, {"bytes": self._file.tell(), "cursor": cursor})

    def _marked(self) -> tuple[int, int]:
        try:
            mark = json.loads(self._mark.read_text(encoding="utf-8"))
            return int(mark["bytes"]), int(mark["cursor"])
        except FileNotFoundError:
            return 0, 0
        except (ValueError, KeyError, TypeError) as error:
            raise TrackerError(f"{self._mark} is damaged ({error}); delete its folder to write it anew.") from error
