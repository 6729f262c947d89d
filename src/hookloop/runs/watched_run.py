"""A run as it is seen from outside: from its statistics, its heartbeat, its game and its files."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookloop.display import Curve, Evaluation, Failure, History, Pace, RunView, SavedCheckpoint
from hookloop.display.view import EPOCHS, RUNNING
from hookloop.errors import StatsError
from hookloop.monitoring.outside import Verdict, watch_heartbeat
from hookloop.runs.folder import CONFIG_FILE, RunConfig, RunFolder
from hookloop.runs.watched_game import WatchedGame

if TYPE_CHECKING:
    from hookloop.stats import StatsReader

Row = dict[str, Any]

STARTING = "starting"
GONE = "gone"
_HANG_SECONDS = 600.0
_BEGINNING_SECONDS = 30.0
"""For how long a run may have statistics that cannot be read yet."""
# What the stopwatch calls the phases, and what the display does.
_PHASES = {"rollout": "collect", "train": "train", "evaluation": "evaluate"}
_LATE_EPOCHS = 2
"""How much later than others a metric of an epoch may be written."""
_TOTAL_TIME = "timing_cumulative/sec/total"


class WatchedRun:
    """Makes views of a run that another process trains; it reads, and touches nothing.

    Args:
        folder: The run's folder.
        wall: Seconds since 1970, as heartbeats have them.
    """

    def __init__(
        self,
        folder: RunFolder,
        *,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder
        self._config = folder.read_config()
        self._column = {"epochs": "epoch"}.get(self._config.goal[1], self._config.goal[1])  # as the tables call it
        self._wall = wall
        self._game = WatchedGame(folder.game_file, wall=wall) if self._config.workload == "selfplay" else None
        self._reader: StatsReader | None = None
        self._found: Row = {}
        self._forget()

    def close(self) -> None:
        """Let go of the statistics."""
        if self._reader is not None:
            self._reader.close()

    def view(self) -> RunView:
        """Return the run as it is now."""
        verdict = watch_heartbeat(self._folder.heartbeat_file, _HANG_SECONDS, once=True)
        try:
            reader = self._open()
            self._found = {} if reader is None else self._measured(reader)
            found = self._found
        except StatsError as error:
            found = {**self._found, "reason": self._fault(error)}  # what was known is still the best there is
        alive = self._alive(verdict, found)
        game = {} if self._game is None else self._game.look(is_on=alive["status"] in (STARTING, RUNNING))
        return RunView(
            **{
                **_about(self._folder.name, self._config),
                **found,
                **alive,
                **game,
                "total_steps": self._config.goal[0],
                "unit": EPOCHS if self._config.goal[1] == EPOCHS else "steps",
            }
        )

    def _fault(self, error: StatsError) -> str:
        """Return why there are no statistics; nothing while the run is only just making them."""
        is_new = self._wall() - (self._folder.path / CONFIG_FILE).stat().st_mtime < _BEGINNING_SECONDS
        return "" if is_new and not self._found else str(error)

    def _forget(self) -> None:
        self._attempt = 0
        self._pace = Pace()
        self._curves: dict[str, History] = {}
        self._next_epoch: dict[str, int] = {}
        self._at: Row = {}

    def _open(self) -> StatsReader | None:
        url = self._folder.stats_url
        if self._reader is None and not (isinstance(url, Path) and not url.exists()):
            from hookloop.stats import StatsReader

            self._reader = StatsReader(url)
        return self._reader

    def _measured(self, reader: StatsReader) -> Row:
        run_id = self._config.run_id
        attempts = reader.attempts(run_id)
        if not attempts:
            return {}
        attempt = attempts[-1]
        if attempt["attempt"] != self._attempt:  # what lies beyond its checkpoint was moved aside
            self._forget()
            self._attempt = attempt["attempt"]
        self._read_curves(reader, run_id)
        total_steps = self._config.goal[0]
        events = reader.events(run_id)
        return {
            **self._at,
            "attempt": attempt["attempt"],
            "status": attempt["outcome"] or RUNNING,
            "steps_per_second": self._pace.speed(),
            "eta_seconds": self._pace.eta_seconds(total_steps),
            "curves": {name: Curve(history.latest, history.points()) for name, history in self._curves.items()},
            "evaluations": _evaluations(reader.evaluations(run_id), self._column),
            "checkpoint": _checkpoint(reader.checkpoints(run_id), self._column),
            "failures": _failures(events, reader.hook_failures(run_id)),
            "reason": _stop_reason(events, attempt),
            "phases": _phases(reader, run_id),
            "hooks": self._hooks(reader.hook_costs(run_id), attempt),
        }

    def _read_curves(self, reader: StatsReader, run_id: str) -> None:
        """Take in what has come since the last look; the metrics of the workload, in its order, as it shows them."""
        newest = max(self._next_epoch.values(), default=0)
        for name, points in reader.metrics_since(run_id, newest - _LATE_EPOCHS).items():
            history, known = self._curves.setdefault(name, History()), self._next_epoch.get(name, 0)
            for point in points:
                if point.epoch < known:
                    continue
                history.add(point.value)
                step = getattr(point, self._column)
                if step >= self._at.get("step", 0):
                    self._pace.add(point.seconds, step)
                    self._at = {"step": step, "epoch": point.epoch, "elapsed_seconds": point.seconds}
            self._next_epoch[name] = max(points[-1].epoch + 1, known)

    def _hooks(self, costs: list[Row], attempt: Row) -> dict[str, float]:
        elapsed_ns = ((attempt["ended"] or self._wall()) - attempt["started"]) * 1e9
        found: dict[str, float] = {}
        for row in costs:
            if row["attempt"] == attempt["attempt"] and row["total_ns"] and elapsed_ns > 0:
                found[row["hook"]] = found.get(row["hook"], 0.0) + row["total_ns"] / elapsed_ns
        return found

    def _alive(self, verdict: Verdict, found: Row) -> Row:
        """Return what the heartbeat knows better than the statistics: whether the run lives, and where it is now."""
        beat = verdict.beat
        if beat is None:
            return {"status": found.get("status", STARTING)}
        if beat.outcome is not None:
            return {"status": beat.outcome}
        if verdict.ending == "gone":
            return {"status": GONE, "reason": "its process ended without a word"}
        seconds = beat.clocks.get("seconds", 0.0) + max(self._wall() - beat.wall_time, 0.0)
        alive: Row = {
            "status": RUNNING,
            "step": max(int(beat.clocks.get(self._config.goal[1], 0)), found.get("step", 0)),
            "epoch": max(int(beat.clocks.get("epochs", 0)), found.get("epoch", 0)),
            "elapsed_seconds": max(seconds, found.get("elapsed_seconds", 0.0)),
        }
        return {**alive, "reason": verdict.words} if verdict.ending == "hung" else alive


def _about(name: str, config: RunConfig) -> Row:
    env = config.settings.get("env", config.settings.get("game"))
    num_envs = env.get("num_envs") if isinstance(env, dict) else None
    return {"run": name, "recipe": config.recipe, "num_envs": num_envs if isinstance(num_envs, int) else None}


def _evaluations(rows: list[Row], column: str) -> tuple[Evaluation, ...]:
    found: dict[str, Evaluation] = {}
    for row in rows:
        name, score, step = row["name"], row["score"], row[column]
        if score is None:
            continue
        known = found.get(name)
        best, best_step = (score, step) if known is None or score >= known.best else (known.best, known.best_step)
        found[name] = Evaluation(name, score, step, best, best_step)
    return tuple(found.values())


def _checkpoint(rows: list[Row], column: str) -> SavedCheckpoint | None:
    return SavedCheckpoint(rows[-1]["name"], rows[-1][column], rows[-1]["seconds"]) if rows else None


def _failures(events: list[Row], summed_up: list[Row]) -> tuple[Failure, ...]:
    """Return the failures of hooks: as the attempt summed them up, or one by one while it lasts."""
    found: dict[str, Failure] = {}
    for row in events:
        if row["what"] == "hook_error":
            before = found.get(row["who"])
            found[row["who"]] = Failure(row["who"], 1 if before is None else before.count + 1, row["why"])
    for row in summed_up:
        found[row["hook"]] = Failure(row["hook"], row["count"], row["last_error"], bool(row["is_disabled"]))
    return tuple(found.values())


def _stop_reason(events: list[Row], attempt: Row) -> str:
    stops = [row["why"] for row in events if row["what"] == "stop" and row["wall_time"] >= attempt["started"]]
    return stops[-1] if stops else ""


def _phases(reader: StatsReader, run_id: str) -> dict[str, float]:
    """Return the shares of the phases, if the run has a stopwatch."""
    latest = reader.latest(run_id)
    total = latest[_TOTAL_TIME].value if _TOTAL_TIME in latest else 0.0
    if total <= 0:
        return {}
    times = {name: latest.get(f"timing_cumulative/sec/{name}") for name in _PHASES}
    return {_PHASES[name]: point.value / total for name, point in times.items() if point is not None}
