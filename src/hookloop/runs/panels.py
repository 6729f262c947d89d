"""Which curves of a run are drawn: six panels that say the most, the metrics that are asked for, or all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from hookloop.charts import Curve, Panel
from hookloop.errors import UnknownNameError
from hookloop.runs.folder import RunFolder
from hookloop.runs.standing import open_stats

if TYPE_CHECKING:
    from hookloop.stats import StatsReader

Clock = Literal["env_steps", "epoch", "seconds", "optimizer_steps"]
CLOCKS: tuple[Clock, ...] = get_args(Clock)
CLOCK_NAMES = {
    "env_steps": "environment steps",
    "epoch": "epochs",
    "seconds": "seconds of training",
    "optimizer_steps": "optimizer steps",
}


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """What a run has measured, as curves over one clock."""

    name: str
    known: list[str]
    """All its metrics."""
    curves: dict[str, Curve]
    """Those that were asked for."""
    epochs: list[dict[str, Any]]
    evaluations: list[Curve]
    resumed_at: list[float]
    """Where its attempts after the first went on."""
    step_clock: str = "env_steps"
    """What its throughput is counted in."""


@dataclass(frozen=True, slots=True)
class _Wish:
    """A panel that is wanted: the first of the patterns that any metric fits decides which ones are in it."""

    title: str
    patterns: tuple[str, ...]
    y_name: str = ""

    def keys(self, known: Iterable[str]) -> list[str]:
        for pattern in self.patterns:
            found = [key for key in known if re.fullmatch(pattern, key)]
            if found:
                return found
        return []


_EVALUATION = "evaluation "
_MATCH = f"{_EVALUATION}match/"
"""A score against an opponent is no return, and lies elsewhere."""
_PAST = rf"{_MATCH}epoch-\d+"
_WISHES = (
    _Wish("rating", (r"eval/rating(_low|_high)?",)),
    _Wish("matches", (), "share of points won"),
    _Wish("how games end", (r"game/recent/(first_wins|second_wins|draws|cut_off)",), "share of the latest games"),
    _Wish("loss", (r"(train_|val_)?loss(es)?(/(total|train|validation|val))?", r"loss(es)?/[^/]+/total")),
    _Wish("policy loss", (r"loss(es)?/([^/]+/)?(policy|actor)",)),
    _Wish("value loss", (r"loss(es)?/([^/]+/)?(value|critic)",)),
    _Wish("accuracy", (r"(train_|val_)?accuracy(/.*)?",)),
    _Wish("return", (r"return/mean", r"return(/.*)?")),
    _Wish("learning rate", (r"(.*[/.])?(learning_rate|lr)",)),
    _Wish("gradient norm", (r"grad_norm", r"grad(ient)?s?/(norm|l2_norm|total_norm)", r"(.*/)?grad(ient)?_norm")),
)


def says_the_most(key: str) -> bool:
    """Say whether a metric may be part of an overview."""
    return any(re.fullmatch(pattern, key) for wish in _WISHES for pattern in wish.patterns)


def usual_clock(folders: Sequence[RunFolder]) -> Clock:
    """Return the clock that says the most about these runs; epochs are what runs of all kinds have."""
    return "env_steps" if all(folder.read_config().step_clock == "env_steps" for folder in folders) else "epoch"


def measured(folder: RunFolder, clock: Clock, is_wanted: Callable[[str], bool] = lambda _: True) -> MeasuredRun:
    """Read the curves of a run, all of them unless it is said which."""
    config = folder.read_config()
    run_id = config.run_id
    with open_stats(folder) as reader:
        known = reader.keys(run_id)
        curves = {key: _curve(reader, run_id, key, folder.name, clock) for key in known if is_wanted(key)}
        epochs, attempts = reader.epochs(run_id), reader.attempts(run_id)
        evaluations = _evaluations(reader.evaluations(run_id), folder.name, clock)
    begun = [each["epoch"] for each in attempts[1:] if each["epoch"]]
    at = {row["epoch"]: float(row[clock]) for row in epochs}
    resumed_at = [at[epoch] for epoch in begun if epoch in at]
    return MeasuredRun(folder.name, known, curves, epochs, evaluations, resumed_at, config.step_clock)


def overview(runs: Sequence[MeasuredRun], clock: Clock, smooth_points: int) -> list[Panel]:
    """Return the panels that say the most: loss, accuracy or return, learning rate, gradients, time and throughput."""
    known = sorted({key for run in runs for key in run.curves})
    evaluations = [curve for run in runs for curve in run.evaluations]
    panels: list[Panel] = []
    for wish in _WISHES:
        keys = wish.keys(known)
        curves = [run.curves[key] for run in runs for key in keys if key in run.curves]
        if wish.title == "return":
            curves += [curve for curve in evaluations if not curve.name.startswith(_MATCH)]
        if wish.title == "matches":
            curves += [curve for curve in evaluations if _is_lasting_match(curve)]
        if curves:
            panels.append(_panel(wish.title, curves, runs, clock, smooth_points, wish.y_name))
    times = [_per_epoch(run, clock, "time per epoch", lambda seconds, _: seconds) for run in runs]
    speeds = [_per_epoch(run, clock, "throughput", lambda seconds, steps: steps / seconds) for run in runs]
    for title, y_name, curves in (("time per epoch", "seconds", times), ("throughput", "steps per second", speeds)):
        if any(len(curve) for curve in curves):
            panels.append(_panel(title, curves, runs, clock, smooth_points, y_name))
    return panels


def _is_lasting_match(curve: Curve) -> bool:
    """Tell whether a curve is one of matches against an opponent that stays; past versions come and go."""
    return curve.name.startswith(_MATCH) and not re.fullmatch(_PAST, curve.name)


def chosen(runs: Sequence[MeasuredRun], keys: Sequence[str], clock: Clock, smooth_points: int) -> list[Panel]:
    """Return a panel for each of the metrics; one that no run has is refused with the nearest."""
    known = sorted({key for run in runs for key in run.known})
    for key in keys:
        if key not in known:
            raise UnknownNameError("metric", key, known, where=f"in {', '.join(repr(run.name) for run in runs)}")
    return [
        _panel(key, [run.curves[key] for run in runs if key in run.curves], runs, clock, smooth_points)
        for key in dict.fromkeys(keys)
    ]


def by_group(run: MeasuredRun, clock: Clock) -> dict[str, list[Panel]]:
    """Return a panel for every metric of a run, by what stands before the first slash of its name."""
    groups: dict[str, list[Panel]] = {}
    for key, curve in run.curves.items():
        groups.setdefault(group_of(key), []).append(_panel(key, [curve], [run], clock, 1))
    return groups


def group_of(key: str) -> str:
    """Return what stands before the first slash of a metric's name."""
    group, _, rest = key.partition("/")
    return group if group and rest else "other"


def _panel(
    title: str, curves: list[Curve], runs: Sequence[MeasuredRun], clock: Clock, smooth_points: int, y_name: str = ""
) -> Panel:
    # Of several runs nobody could tell whose resume a line is.
    marks = [(x, "resumed") for x in runs[0].resumed_at] if len(runs) == 1 else []
    return Panel(title, curves, CLOCK_NAMES[clock], y_name, smooth_points, marks)


def _curve(reader: StatsReader, run_id: str, key: str, run: str, clock: Clock) -> Curve:
    points = reader.metric(run_id, key)
    return Curve(key, [float(getattr(point, clock)) for point in points], [point.value for point in points], run)


def _evaluations(rows: Sequence[dict[str, Any]], run: str, clock: Clock) -> list[Curve]:
    by_name: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row["score"] is not None:
            by_name.setdefault(row["name"], []).append(row)
    return [
        Curve(f"{_EVALUATION}{name}", [float(row[clock]) for row in found], [float(row["score"]) for row in found], run)
        for name, found in by_name.items()
    ]


def _per_epoch(run: MeasuredRun, clock: Clock, name: str, figure: Callable[[float, float], float]) -> Curve:
    """Return a figure of every epoch, from the time and the steps it took."""
    x: list[float] = []
    y: list[float] = []
    before: dict[str, Any] = {"seconds": 0.0, run.step_clock: 0}
    for row in run.epochs:
        seconds = row["seconds"] - before["seconds"]
        if seconds > 0:
            x.append(float(row[clock]))
            y.append(figure(seconds, row[run.step_clock] - before[run.step_clock]))
        before = row
    return Curve(name, x, y, run.name)
