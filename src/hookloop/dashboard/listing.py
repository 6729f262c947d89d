"""The list of all runs. One that cannot be read is a line of it, and takes none of the others along."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import orjson

from hookloop.runs.folder import CONFIG_FILE, RunFolder, all_runs
from hookloop.runs.standing import DAMAGED, SUMMARY, summary
from hookloop.runs.tags import TAGS_FOLDER

LIST_VERSION = 1
_SETTLED = ("completed", "stopped", "interrupted", "failed", "killed", DAMAGED)


class _Line(NamedTuple):
    began: float
    body: bytes
    is_settled: bool


class Listing:
    """Reads the runs of a folder; one that has ended is read again only when its files have changed.

    Args:
        runs_dir: The folder of all runs.
    """

    def __init__(self, runs_dir: Path) -> None:
        self._runs_dir = runs_dir
        self._settled: dict[str, tuple[object, _Line]] = {}

    def read(self) -> bytes:
        """Return all runs as JSON, the newest first."""
        before, self._settled = self._settled, {}
        lines: list[_Line] = []
        for folder in all_runs(self._runs_dir):
            signature = _signature(folder)
            known = before.get(folder.name)
            line = known[1] if known is not None and known[0] == signature else _line(folder)
            if line.is_settled:
                self._settled[folder.name] = (signature, line)
            lines.append(line)
        lines.sort(key=lambda line: line.began, reverse=True)
        about = orjson.dumps({"version": LIST_VERSION, "folder": self._runs_dir.name})
        return about[:-1] + b',"runs":[' + b",".join(line.body for line in lines) + b"]}"


def about(file: Path) -> tuple[int, int, int] | None:
    """Return what tells a file from another of its name, and from itself before it was changed."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _line(folder: RunFolder) -> _Line:
    found: dict[str, Any] = summary(folder)
    # As a text: a browser rounds large numbers.
    line = {**found, "seed": None if found["seed"] is None else str(found["seed"])}
    try:
        body = orjson.dumps(line)
    except TypeError:  # what is written there is no text, or no number that JSON could hold
        body = orjson.dumps({**dict.fromkeys(SUMMARY), "run": folder.name, "status": DAMAGED, "tags": []})
    return _Line(found["began"] or 0.0, body, found["status"] in _SETTLED)


def _signature(folder: RunFolder) -> object:
    """Return what changes when a run goes on, is tagged, or is another one."""
    config, tags = folder.path / CONFIG_FILE, folder.path / TAGS_FOLDER
    files = (config, tags, folder.heartbeat_file, folder.result_file, folder.stats_file)
    log = about(folder.stats_file.with_name(f"{folder.stats_file.name}-wal"))
    # To read is enough to make an empty one, or to remove it.
    return *map(about, files), log if log and log[-1] else None
