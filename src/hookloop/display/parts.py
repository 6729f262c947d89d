"""The pieces that the panel and the compact form are made of, each a line or a few."""

from __future__ import annotations

import math

from hookloop.display.canvas import (
    ATTENTION,
    BAD,
    CURVE,
    GOOD,
    LABEL,
    PLAIN,
    STRONG,
    TITLE,
    Glyphs,
    Line,
    joined,
    share_bar,
    shortened,
)
from hookloop.display.figures import count, duration, number, rate, share, shown
from hookloop.display.sparkline import sparkline
from hookloop.display.view import EPOCHS, RUNNING, STOPPING, Curve, Evaluation, RunView

OTHER = "other"
HOOKS = "hooks"
_STATUS_STYLES = {RUNNING: GOOD, "completed": GOOD, "stopped": GOOD, STOPPING: ATTENTION, "interrupted": ATTENTION}


def title(view: RunView, glyphs: Glyphs) -> Line:
    """Return what the run is called."""
    line = Line().add(view.run or "run", TITLE)
    if view.recipe and view.recipe != view.run:
        line.add(glyphs.dot, LABEL).add(view.recipe)
    return line


def facts(view: RunView, glyphs: Glyphs) -> Line:
    """Return what it runs on."""
    found: list[str] = []
    if view.device:
        found.append(view.device)
    if view.num_envs is not None:
        found.append(f"{count(view.num_envs)} env{'' if view.num_envs == 1 else 's'}")
    if view.parameters is not None:
        found.append(f"{count(view.parameters)} parameters")
    if view.attempt > 1:
        found.append(f"attempt {view.attempt}")
    return joined((Line().add(text) for text in found), glyphs.dot)


def status(view: RunView) -> Line:
    """Return how the run stands, and why."""
    style = _STATUS_STYLES.get(view.status, BAD)
    line = Line().add(view.status, style)
    return line.add(f" ({view.reason})", LABEL) if view.reason else line


def percent(view: RunView) -> str:
    """Return how far the run is, rounded down: only what is done is 100 %."""
    return "" if view.progress is None else f"{math.floor(view.progress * 1000) / 10:.1f} %"


def steps(view: RunView) -> Line:
    """Return how many steps are done, of how many."""
    line = Line().add(count(view.step), STRONG)
    if view.total_steps:
        line.add(" of ", LABEL).add(count(view.total_steps))
    return line.add(f" {view.unit}", LABEL)


def speed(view: RunView) -> Line:
    """Return the steps per second."""
    found = "-" if view.steps_per_second is None else rate(view.steps_per_second)
    return Line().add(found, STRONG).add(f" {view.unit}/s", LABEL)


def epoch(view: RunView) -> Line:
    """Return the epoch; nothing where the steps are epochs already."""
    return Line() if view.unit == EPOCHS else Line().add("epoch ", LABEL).add(f"{view.epoch:,}", STRONG)


def times(view: RunView) -> list[Line]:
    """Return how long it took, and how long it will take."""
    found = [Line().add("elapsed ", LABEL).add(duration(view.elapsed_seconds), STRONG)]
    if view.is_ticking and view.total_steps:
        found.append(Line().add("left ", LABEL).add(duration(view.eta_seconds), STRONG))
    return found


def phase_shares(view: RunView) -> dict[str, float]:
    """Return the shares of the phases, of what is left, and of all hooks together; empty before anything is known."""
    if not view.phases and not view.hooks:
        return {}
    other = 1.0 - sum(view.phases.values()) - view.hooks_share
    rest = {OTHER: max(other, 0.0)} if view.phases else {}
    return {**view.phases, **rest, HOOKS: view.hooks_share}


def hooks_by_cost(view: RunView) -> list[tuple[str, float]]:
    """Return the hooks that cost something to be seen, the dearest first."""
    return sorted(((name, part) for name, part in view.hooks.items() if part >= 0.0005), key=lambda each: -each[1])


def share_line(name: str, part: float, name_width: int, bar_width: int, glyphs: Glyphs, indent: str = "") -> Line:
    """Return one row of the table of times."""
    line = Line().add(indent + shortened(name, name_width - len(indent), glyphs), LABEL)
    line.add(share(part).rjust(8), STRONG if not indent else PLAIN).add("  ")
    return line.extend(share_bar(part, bar_width, glyphs))


def curve_line(name: str, curve: Curve, name_width: int, letters: int, glyphs: Glyphs) -> Line:
    """Return one row of the table of metrics."""
    line = Line().add(shortened(name, name_width, glyphs), LABEL)
    line.add(number(curve.latest).rjust(11), STRONG if math.isfinite(curve.latest) else BAD).add("  ")
    return line.add(sparkline(curve.points, letters, glyphs.bars), CURVE)


def evaluation(found: Evaluation, glyphs: Glyphs) -> Line:
    """Return the newest score, and the best if that is another."""
    line = Line().add(f"{found.name} ", LABEL).add(number(found.score), STRONG if math.isfinite(found.score) else BAD)
    line.add(" at ", LABEL).add(count(found.step))
    if found.best_step == found.step:
        return line.add(" (best)", GOOD)
    return line.add(glyphs.dot, LABEL).add("best ", LABEL).add(number(found.best)).add(f" at {count(found.best_step)}")


def evaluations(view: RunView, glyphs: Glyphs) -> Line:
    """Return all scores."""
    return joined((evaluation(each, glyphs) for each in view.evaluations), "   ")


def saved(view: RunView) -> Line:
    """Return the newest checkpoint and its age."""
    if view.checkpoint is None:
        return Line().add("none yet", LABEL)
    line = Line().add(view.checkpoint.name)
    if view.is_ticking:
        age = view.elapsed_seconds - view.checkpoint.elapsed_seconds
        line.add(f"  {duration(age)} ago", LABEL)
    return line


def trackers(view: RunView, glyphs: Glyphs) -> Line:
    """Return how writing goes, place by place."""
    found: list[Line] = []
    for each in view.trackers:
        state = each.state or ("ok" if each.is_well else "failing")
        line = Line().add(f"{each.name} ").add(state, GOOD if each.is_well else BAD)
        if each.queued and not each.is_well:
            line.add(f", {count(each.queued)} queued", ATTENTION)
        if each.dropped:
            line.add(f", {count(each.dropped)} lost", BAD)
        if each.last_error:
            line.add(f": {each.last_error}", LABEL)
        found.append(line)
    return joined(found, glyphs.dot)


def failures(view: RunView, glyphs: Glyphs) -> Line:
    """Return what has gone wrong, hook by hook."""
    found: list[Line] = []
    for each in view.failures:
        line = Line().add(each.hook, BAD).add(f" {count(each.count)} time{'' if each.count == 1 else 's'}")
        if each.is_disabled:
            line.add(", switched off", ATTENTION)
        found.append(line.add(f": {each.last_error}" if each.last_error else "", LABEL))
    return joined(found, glyphs.dot) if found else Line().add("none", GOOD)


def notes(view: RunView, glyphs: Glyphs) -> Line:
    """Return what somebody wanted shown."""
    return joined((Line().add(f"{name} ", LABEL).add(shown(value)) for name, value in view.notes.items()), glyphs.dot)
