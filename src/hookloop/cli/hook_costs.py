"""``hookloop hooks --run``: what the hooks of a run have cost, and what has gone wrong in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookloop.cli.run_details import latest_failures
from hookloop.cli.tables import duration, say, show_table, write_json
from hookloop.errors import UnknownNameError
from hookloop.runs.folder import find_run
from hookloop.runs.standing import open_stats

if TYPE_CHECKING:
    from hookloop.stats import StatsReader

COST_COLUMNS = ("hook", "event", "calls", "total", "mean", "max", "share")


@dataclass(frozen=True, slots=True)
class Cost:
    """What a hook has cost at an event, over all attempts that said so."""

    hook: str
    event: str
    calls: int
    total_seconds: float
    mean_seconds: float
    max_seconds: float
    share: float
    """Of the time of those attempts."""

    @property
    def cells(self) -> list[str]:
        """The cost as it stands in a table, under ``COST_COLUMNS``."""
        times = [duration(seconds) for seconds in (self.total_seconds, self.mean_seconds, self.max_seconds)]
        return [self.hook, self.event, str(self.calls), *times, f"{self.share:.2%}"]


def show_costs(run: str, runs_dir: Path, *, hook: str | None = None, json: bool = False) -> int:
    """Show the costs and failures of a run's hooks, the dearest first."""
    folder = find_run(runs_dir, run)
    with open_stats(folder) as reader:
        run_id = folder.read_config().run_id
        costs, failures = costs_of(reader, run_id), latest_failures(reader.hook_failures(run_id))
    known = {*(each.hook for each in costs), *(each["hook"] for each in failures)}
    if hook is not None and known and hook not in known:
        raise UnknownNameError("hook", hook, known, where=f"in the run {folder.name!r}")
    costs = [each for each in costs if hook in (None, each.hook)]
    failures = [each for each in failures if hook in (None, each["hook"])]
    if json:
        write_json({"run": folder.name, "costs": [asdict(each) for each in costs], "failures": failures})
        return 0
    if not costs:
        say(f"no costs of hooks in {folder.name} yet: a run writes them as it goes")
    else:
        show_table(COST_COLUMNS, [each.cells for each in costs])
    if costs and hook is None:
        say(f"all hooks took {sum(each.share for each in costs):.1%} of the time")
    for each in failures:
        off = ", switched off" if each["is_disabled"] else ""
        say(f"failed  {each['hook']}: {each['count']} times{off}, last at {each['last_event']}: {each['last_error']}")
    return 0


def costs_of(reader: StatsReader, run_id: str) -> list[Cost]:
    """Return what hooks have cost in a run, by hook and event, the dearest first."""
    rows = [row for row in reader.hook_costs(run_id) if row["calls"]]
    seconds = _seconds_of(reader, run_id, {row["attempt"] for row in rows})
    by_place: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        by_place.setdefault((row["hook"], row["event"]), []).append(row)
    costs = [_joined(hook, event, found, seconds) for (hook, event), found in by_place.items()]
    return sorted(costs, key=lambda cost: (-cost.total_seconds, cost.hook, cost.event))


def _seconds_of(reader: StatsReader, run_id: str, counted: set[int]) -> float:
    """Return how long these attempts took; one that has not said when it ended lasted until its newest epoch."""
    attempts = [each for each in reader.attempts(run_id) if each["attempt"] in counted]
    seen: dict[int, float] = {}
    if any(each["ended"] is None for each in attempts):
        for row in (*reader.epochs(run_id), *reader.superseded(run_id, "epochs")):
            seen[row["attempt"]] = max(row["wall_time"], seen.get(row["attempt"], 0.0))
    return sum(max((each["ended"] or seen.get(each["attempt"], 0.0)) - each["started"], 0.0) for each in attempts)


def _joined(hook: str, event: str, rows: Sequence[dict[str, Any]], seconds: float) -> Cost:
    calls, total = sum(row["calls"] for row in rows), sum(row["total_ns"] for row in rows) / 1e9
    longest = max(row["max_ns"] for row in rows) / 1e9
    return Cost(hook, event, calls, total, total / calls, longest, total / seconds if seconds > 0 else 0.0)
