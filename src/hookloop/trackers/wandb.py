"""Weights & Biases, and what has the same calls."""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from hookloop.errors import MissingExtraError, TrackerError
from hookloop.trackers.base import EpochRows, Reading, TrackedRun, epochs_held, readings
from hookloop.trackers.wandb_files import is_complete, offline_rows

Live = Any  # the module, its runs and its API: third-party objects

DEFAULT_AXIS = "metric/agent_step"
AXES = (DEFAULT_AXIS, "metric/epoch", "metric/optimizer_step", "metric/seconds")
CURSOR, PART = "hookloop/cursor", "hookloop/part"
_CLOSE_SECONDS = 10.0

Mode = Literal["online", "offline", "shared", "disabled"]


class WandbTracker:
    """Logs to W&B, or to a module with the same calls, such as trackio.

    Every row carries the run's own clocks, of which ``metric/agent_step`` is the x axis, and how far it goes: after a
    crash the position is read back, from the server when online, from the files when offline.

    Args:
        folder: The run's folder, below which offline files are kept.
        project: The project.
        mode: online, offline, ...; None leaves it to W&B's own settings.
        entity: Whose project; None for the user's own.
        group: A name that several runs share.
        tags: Added to the tags of the run.
        abort_tag: Whoever gives this tag to the run on the server stops it; None to never look.
        module: What is called; wandb by default.
        run: A run that somebody else has begun and will finish, used as it is.
    """

    def __init__(
        self,
        folder: Path,
        project: str = "hookloop",
        mode: Mode | None = None,
        entity: str | None = None,
        group: str | None = None,
        tags: Sequence[str] = (),
        abort_tag: str | None = None,
        *,
        module: Live = None,
        run: Live = None,
    ) -> None:
        if module is None and run is None:
            if find_spec("wandb") is None:
                raise MissingExtraError("The wandb tracker", "wandb")
            module = import_module("wandb")  # now: a second of imports in a thread would take that time from training
        self._folder = folder
        self._options = {"project": project, "mode": mode, "entity": entity, "group": group}
        self._tags = tuple(tags)
        self._abort_tag = abort_tag
        self._module: Live = module
        self._about: TrackedRun | None = None
        self._run: Live = None
        self._given_run: Live = run
        self._skipped = 0
        self._offline_rows: int | None = None

    def open(self, run: TrackedRun) -> int | None:
        """Return how far the run is held; offline that needs no connection, and nothing is begun yet."""
        self._about = run
        is_wandb = self._given_run is None and self._module.__name__ == "wandb"
        if is_wandb and (self._options["mode"] == "offline" or self._started().offline):
            newest, self._offline_rows = self._held_offline(run.run_id)
        else:
            newest = getattr(self._started(), "summary", None)
            if newest is None:
                return None
        self._skipped = int(newest.get(PART) or 0)
        return int(newest.get(CURSOR) or 0)

    def log(self, epochs: Sequence[EpochRows]) -> None:
        """Log a row for each reading; the last one of an epoch says that the epoch is whole."""
        run = self._started()
        for epoch in epochs:
            found = readings(epoch.rows)
            before = epoch.rows[0]["after_epoch"]
            for part, reading in enumerate(found, 1):
                is_last = part == len(found)
                if part > self._skipped:  # the others came before a crash
                    place = {CURSOR: epoch.cursor if is_last else before, PART: 0 if is_last else part}
                    self._log_row(run, {**reading.metrics, **_clocks(reading), **place})
            self._skipped = 0

    def finish(self, outcome: str) -> None:
        """Put the outcome into the summary."""
        _summarise(self._started(), {"status": outcome})

    def close(self) -> None:
        """End the run of this process; it can be resumed."""
        if self._run is not None:
            run, self._run = self._run, None
            if run is self._given_run:
                return
            run.finish()
            if self._offline_rows is not None:
                _wait_for(Path(run.settings.sync_file))

    def stop_reason(self) -> str | None:
        """Look on the server whether the run has the abort tag."""
        run = self._run
        if self._abort_tag is None or self._module is None or run is None or getattr(run, "offline", True):
            return None
        if self._abort_tag in self._module.Api().run(run.path).tags:
            return f"the run has the tag {self._abort_tag!r} on {self._module.__name__}"
        return None

    def _log_row(self, run: Live, row: Mapping[str, float]) -> None:
        if self._offline_rows is None:
            run.log(row)
        else:
            # Each process of an offline run would number its rows from 0, and the server would take them for the same.
            run.log(row, step=self._offline_rows, commit=True)
            self._offline_rows += 1

    def _held_offline(self, run_id: str) -> tuple[dict[str, int], int]:
        """Return the cursor and part of the furthest row in the files, and how many rows there are."""
        furthest, count = (0, False, 0), 0
        for count, row in enumerate(offline_rows(self._folder, run_id), 1):  # noqa: B007  # the last count is wanted
            cursor, part = (int(json.loads(row.get(key, "0"))) for key in (CURSOR, PART))
            furthest = max(furthest, (epochs_held(cursor), cursor < 0, part))
        epochs, has_end, part = furthest
        return {CURSOR: -1 - epochs if has_end else epochs, PART: part}, count

    def _started(self) -> Live:
        """Return the run of this process, begun with the first call that needs it."""
        if self._run is not None:
            return self._run
        if self._about is None:
            raise TrackerError("The W&B tracker is not open; call open first.")
        about = self._about
        self._run = self._begun(about) if self._given_run is None else self._given_run
        if hasattr(self._run, "define_metric"):
            _define_axes(self._run)
        size = {} if about.model_parameters is None else {"model/parameters": about.model_parameters}
        _summarise(self._run, {"status": "running", **size})
        return self._run

    def _begun(self, about: TrackedRun) -> Live:
        wanted = {
            **{name: value for name, value in self._options.items() if value is not None},
            "id": about.run_id,
            "name": about.name,
            "resume": "allow",
            "allow_val_change": True,  # a resumed run may have other settings than it began with
            "dir": str(self._folder),
            "tags": [*about.tags, *self._tags],
            "config": {**about.config, "recipe": about.recipe, "seed": about.seed},
            **_quiet(self._module),
        }
        known = inspect.signature(self._module.init).parameters
        return self._module.init(**{name: value for name, value in wanted.items() if name in known})


def trackio_tracker(folder: Path, project: str = "hookloop") -> WandbTracker:
    """Return a tracker that logs to trackio."""
    if find_spec("trackio") is None:
        raise MissingExtraError("The trackio tracker", "trackio")
    return WandbTracker(folder, project, module=import_module("trackio"))


def _define_axes(run: Live) -> None:
    for axis in AXES:
        run.define_metric(axis)
    run.define_metric("hookloop/*", hidden=True)
    run.define_metric("*", step_metric=DEFAULT_AXIS)


def _clocks(reading: Reading) -> dict[str, float]:
    values = (reading.step, reading.epoch, reading.optimizer_steps, reading.seconds)
    return dict(zip(AXES, values, strict=True))


def _wait_for(file: Path) -> None:
    """Wait until an offline run is on the disk: W&B still writes when it says that it has finished."""
    until = time.monotonic() + _CLOSE_SECONDS
    while not is_complete(file):
        if time.monotonic() > until:
            raise TrackerError(f"W&B has not written {file} within {_CLOSE_SECONDS:g} s of the end of its run.")
        time.sleep(0.01)


def _summarise(run: Live, values: Mapping[str, Any]) -> None:
    summary = getattr(run, "summary", None)
    if summary is not None:
        summary.update(dict(values))


def _quiet(module: Live) -> dict[str, Any]:
    """Return settings by which W&B neither takes over the output nor watches the machine: others do that."""
    if module.__name__ != "wandb":
        return {}
    settings = module.Settings(
        console="off",
        silent=True,
        disable_code=True,
        disable_git=True,
        x_disable_stats=True,
        x_save_requirements=False,
    )
    return {"settings": settings, "reinit": "create_new"}
