"""``hookloop report``: everything about a run on one page that can be sent to somebody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hookloop.charts import Bars, Facts, Folded, Page, Panel, Part, Prose, Section, Table
from hookloop.cli.hook_costs import COST_COLUMNS, Cost, costs_of
from hookloop.cli.run_details import Details, details
from hookloop.cli.run_show import ATTEMPT_COLUMNS, as_text, attempt_rows, changed_from, checkpoint_notes
from hookloop.cli.tables import duration, moment, say, short, size
from hookloop.errors import ConfigError
from hookloop.runs.folder import find_run
from hookloop.runs.panels import CLOCK_NAMES, Clock, MeasuredRun, by_group, measured, overview, usual_clock
from hookloop.runs.standing import open_stats

DEFAULT_NAME = "report.html"
_MOST_ROWS = 1000


def report(run: str, *, x: Clock | None = None, to: Path | None = None, runs_dir: Path = Path("runs")) -> int:
    """Write one page about a run: its curves, evaluations, checkpoints, hooks, settings and surroundings.

    Args:
        run: The run's name, the beginning of it, its path, or latest.
        x: The clock below the curves; environment steps by default, or epochs where there are none.
        to: The file, which ends in .html; report.html in the run's folder by default.
        runs_dir: The folder of all runs.
    """
    folder = find_run(runs_dir, run)
    file = to if to is not None else folder.path / DEFAULT_NAME
    if file.suffix.lower() != ".html":
        raise ConfigError(f"--to must end in .html, got {str(file)!r}.")
    clock = x if x is not None else usual_clock([folder])
    found, curves = details(folder), measured(folder, clock)
    with open_stats(folder) as reader:
        costs = costs_of(reader, found["run_id"])
    sections = [
        Section("In short", [Facts(_headline(found))]),
        Section("Curves", _curves(curves, clock)),
        Section("Evaluations", _evaluations(found, curves, clock)),
        Section("Checkpoints", _checkpoints(found)),
        Section("Hooks", _hooks(costs, found)),
        Section("Attempts", [Table(ATTEMPT_COLUMNS, attempt_rows(found))]),
        Section("Events", _events(found)),
        Section("Configuration", _configuration(found)),
        Section("Environment", _environment(found)),
    ]
    because = f": {found['ended_because']}" if found["ended_because"] else ""
    Page(found["run"], sections, f"{found['recipe']}, seed {found['seed']}, {found['status']}{because}").write(file)
    say(f"wrote {file} ({size(file.stat().st_size)})")
    return 0


def _headline(found: Details) -> dict[str, str]:
    clocks, score = found["clocks"], found["score"]
    clock: Clock = found["step_clock"]
    steps = clocks[clock]
    speed = steps / clocks["seconds"] if clocks["seconds"] else 0.0
    facts = {"status": found["status"]}
    if score is not None and score["last"] is not None:
        facts[score["metric"]] = short(score["last"])
        facts[f"best {score['metric']}"] = short(score["best"])
    facts |= {
        CLOCK_NAMES[clock]: f"{steps:,}",
        "time": duration(clocks["seconds"]),
        "steps per second": f"{speed:,.0f}",
        "began (UTC)": moment(found["created"]),
        "size": size(found["size_bytes"]),
    }
    return facts | ({"tags": " ".join(found["tags"])} if found["tags"] else {})


def _curves(run: MeasuredRun, clock: Clock) -> list[Part]:
    panels = overview([run], clock, 1)
    if not panels:
        return [Prose("No epoch has been completed yet.")]
    groups = by_group(run, clock)
    return [*panels, *(Folded(f"{group} ({len(found)})", found) for group, found in groups.items())]


def _evaluations(found: Details, run: MeasuredRun, clock: Clock) -> list[Part]:
    rows = found["evaluations"]
    if not rows:
        return [Prose("The run has not been evaluated yet.")]
    columns = ("name", "step", "score", "episodes", "checkpoint", "all scores")
    cells = [
        [row["name"], str(row[found["step_clock"]]), short(row["score"]), str(row["episodes"]),
         row["checkpoint"] or "in memory", ", ".join(f"{name} {short(value)}" for name, value in row["scores"].items())]
        for row in reversed(rows)
    ]  # fmt: skip
    chart = Panel("score", run.evaluations, CLOCK_NAMES[clock])
    return [chart, Table(columns, cells[:_MOST_ROWS], frozenset({"step", "score", "episodes"}))]


def _checkpoints(found: Details) -> list[Part]:
    if not found["checkpoints"]:
        return [Prose("No checkpoint is kept.")]
    rows = [
        [each["name"], short(each.get("epoch")), short(each.get("score")), size(each.get("size_bytes", 0)),
         each.get("exactness", ""), checkpoint_notes(each)]
        for each in reversed(found["checkpoints"])
    ]  # fmt: skip
    columns = ("name", "epoch", "score", "size", "exactness", "notes")
    return [Table(columns, rows, frozenset({"epoch", "score", "size"}))]


def _hooks(costs: Sequence[Cost], found: Details) -> list[Part]:
    parts: list[Part] = []
    if costs:
        by_hook: dict[str, float] = {}
        for cost in costs:
            by_hook[cost.hook] = by_hook.get(cost.hook, 0.0) + cost.share * 100
        dearest = dict(sorted(by_hook.items(), key=lambda item: -item[1]))
        table = Table(COST_COLUMNS, [each.cells for each in costs], frozenset(COST_COLUMNS[2:]))
        parts += [Prose(f"All hooks took {sum(dearest.values()):.1f} % of the time of training.")]
        parts += [Bars(dearest, "% of the time"), Folded(f"by event ({len(costs)})", [table])]
    else:
        parts.append(Prose("No costs of hooks are known yet: a run writes them as it goes."))
    if not found["failures"]:
        return [*parts, Prose("No hook has failed.")]
    rows = [
        [each["hook"], str(each["count"]), each["last_event"], each["last_error"], "yes" if each["is_disabled"] else ""]
        for each in found["failures"]
    ]
    return [*parts, Table(("hook", "failures", "last at", "last error", "switched off"), rows, frozenset({"failures"}))]


def _events(found: Details) -> list[Part]:
    if not found["events"]:
        return [Prose("Nothing out of the ordinary happened.")]
    rows = [
        [str(each[found["step_clock"]]), moment(each["wall_time"]), each["who"], each["what"], each["why"]]
        for each in reversed(found["events"])
    ]
    return [Table(("step", "when (UTC)", "who", "what", "why"), rows[:_MOST_ROWS], frozenset({"step"}))]


def _configuration(found: Details) -> list[Part]:
    differences = found["differs_from_recipe"] or []
    recipe_of = {each["setting"]: as_text(each["recipe"]) for each in differences}
    rows = [[path, as_text(value), recipe_of.get(path, "")] for path, value in _flat(found["settings"]).items()]
    count = "no setting differs" if not differences else f"{len(differences)} settings differ"
    told = Prose(f"{count} from the recipe {found['recipe']}.".capitalize())
    if found["differs_from_recipe"] is None:
        told = Prose(f"There is no recipe {found['recipe']!r} here to compare the settings with.")
    parts: list[Part] = [told]
    if differences:
        differing = [[each["setting"], as_text(each["run"]), as_text(each["recipe"])] for each in differences]
        parts.append(Table(("setting", "value", "recipe"), differing))
    if found["changed_on_resume"]:
        changes = [
            [each["path"], as_text(each["before"]), as_text(each["after"]), changed_from(each, found)]
            for each in found["changed_on_resume"]
        ]
        parts.append(Table(("changed on resume", "before", "after", "from step"), changes, frozenset({"from step"})))
    everything = Table(("setting", "value", "recipe, where it differs"), rows, is_searchable=True)
    return [*parts, Folded(f"all settings ({len(rows)})", [everything])]


def _environment(found: Details) -> list[Part]:
    rows = [["run id", found["run_id"]], ["folder", found["path"]], ["threads", str(found["threads"])]]
    if found["attempts"]:
        latest = found["attempts"][-1]
        rows += [["machine", latest["hostname"]]]
        rows += [[name, as_text(value)] for name, value in (latest["versions"] or {}).items()]
    return [Table(("what", "is"), rows)]


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            found.update(_flat(value, f"{prefix}{name}."))
        else:
            found[f"{prefix}{name}"] = value
    return found
