"""``hookloop sync``: send trackers what they have missed of a run."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from hookloop.cli.exit_codes import EXIT_FAILED
from hookloop.config.settings import options_by_name
from hookloop.errors import ConfigError, RunLockedError, StatsError
from hookloop.hooks.stats_source import StatsSource
from hookloop.hooks.trackers import tracker_lock
from hookloop.runs.folder import RunFolder, find_run
from hookloop.trackers import Replay, Tracker, make_tracker
from hookloop.trackers.registry import ALWAYS

_TRIES = 3
_FIRST_PAUSE_SECONDS = 1.0


def sync(run: str, *, tracker: list[str] | None = None, runs_dir: Path = Path("runs")) -> int:
    """Send trackers what they have missed of a run, also while it trains.

    Args:
        run: The run's name, or its path.
        tracker: Trackers to send to, by name; those of the run's settings and metrics.jsonl by default.
        runs_dir: The folder of all runs.
    """
    folder = find_run(runs_dir, run)
    url = folder.stats_url
    if isinstance(url, Path) and not url.exists():
        raise StatsError(f"The run {folder.name!r} has no statistics yet: there is no {url}.")
    options = {ALWAYS: {}, **_wanted(folder)}
    names = list(tracker) if tracker else list(options)
    trackers = {name: make_tracker(name, folder.path, options.get(name, {})) for name in names}
    code, locked = 0, None
    width = max(map(len, trackers))
    for name, each in trackers.items():
        try:
            said, is_sent = _sent(folder, name, each)
        except RunLockedError as error:
            locked, said, is_sent = error, "another process sends to it", False
        _say(f"{name.ljust(width)}  {said}")
        code = code if is_sent else EXIT_FAILED
    if locked is not None:
        raise locked
    return code


def _wanted(folder: RunFolder) -> dict[str, dict[str, Any]]:
    found = options_by_name(folder.read_config().settings.get("trackers", {}))
    if not isinstance(found, dict) or not all(isinstance(each, dict) for each in found.values()):
        raise ConfigError(f"The run {folder.name!r} has trackers={found!r:.100}, which should be options by name.")
    return found


def _sent(folder: RunFolder, name: str, tracker: Tracker) -> tuple[str, bool]:
    """Send what one tracker lacks; return what to say, and whether all of it was sent."""
    source = StatsSource(folder.stats_url, folder.read_config().run_id, name)
    with tracker_lock(folder.path, name):
        replay = Replay(tracker, source)
        try:
            failed = _replayed(replay)
            status = source.run().status
            if failed is None and replay.rows_sent and status != "running" and not replay.finish(status):
                failed = replay.error
        finally:
            replay.close()
    said = _counted(replay)
    return (said, True) if failed is None else (f"{said}; then it failed: {type(failed).__name__}: {failed}", False)


def _replayed(replay: Replay) -> Exception | None:
    """Send everything; return what it failed with when it failed several times in a row."""
    failures = 0
    while not replay.is_caught_up:
        if replay.advance():
            failures = 0
            continue
        failures += 1
        if failures == _TRIES:
            return replay.error
        time.sleep(_FIRST_PAUSE_SECONDS * 2 ** (failures - 1))
    return None


def _counted(replay: Replay) -> str:
    if not replay.rows_sent:
        return "nothing to send"
    return f"{replay.rows_sent} points, epochs {replay.first_epoch}-{replay.last_epoch}"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
