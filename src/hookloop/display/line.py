"""A run in one line: stable keys, made to be read, piped and searched; or as JSON, for programs."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime

from hookloop.boards import view_as_plain
from hookloop.display.figures import printable
from hookloop.display.view import EPOCHS, RUNNING, RunView


def plain_line(view: RunView, when: datetime | None = None) -> str:
    """Return a view as ``TIME key=value key=value``: the time, where the run is, how fast, and all metrics.

    Keys do not change their names or their order; what is not known yet is left out. A value with blanks is quoted.
    """
    goal = f"/{view.total_steps}" if view.total_steps else ""
    fields: dict[str, object] = {"step": f"{view.step}{goal}", "epoch": view.epoch}
    if view.unit == EPOCHS:
        fields = {"epoch": f"{view.step}{goal}"}
    fields.update(_figures(view))
    if view.hooks:
        fields["hooks"] = f"{view.hooks_share:.1%}"
    fields.update({name: curve.latest for name, curve in view.ordered_curves.items()})
    for each in view.evaluations:
        fields[f"eval/{each.name}"] = f"{each.score:.4g}@{each.step}"
    fields.update({f"failed/{each.hook}": each.count for each in view.failures})
    if view.game_fault:
        fields["game"] = f"none: {view.game_fault}"
    fields.update(view.notes)
    return f"{_time(when)} " + " ".join(f"{_word(name)}={_word(_short(value))}" for name, value in fields.items())


def json_line(view: RunView, when: datetime | None = None) -> str:
    """Return a view as one JSON object in one line; a value that is not finite is null."""
    fields: dict[str, object] = {"time": _time(when), "step": view.step, "epoch": view.epoch}
    fields.update(_figures(view))
    if view.total_steps:
        fields["total_steps"] = view.total_steps
    if view.unit == EPOCHS:
        fields["unit"] = view.unit
    if view.hooks:
        fields["hooks"] = view.hooks_share
    fields.update({name: curve.latest for name, curve in view.ordered_curves.items()})
    for each in view.evaluations:
        fields[f"eval/{each.name}"] = {"score": each.score, "step": each.step}
    fields.update({f"failed/{each.hook}": each.count for each in view.failures})
    if view.game is not None:
        fields["game"] = {**view_as_plain(view.game), "age_seconds": view.game_age_seconds}
    elif view.game_fault:
        fields["game"], fields["game_fault"] = None, view.game_fault
    fields.update(view.notes)
    return json.dumps(_finite(fields), default=str)


def _figures(view: RunView) -> dict[str, object]:
    found: dict[str, object] = {}
    if view.steps_per_second is not None:
        found["sps"] = round(view.steps_per_second, None if view.steps_per_second >= 10 else 3)
    if view.is_ticking and view.eta_seconds is not None and math.isfinite(view.eta_seconds):
        found["eta"] = round(view.eta_seconds)
    if view.status != RUNNING:
        found["status"] = view.status
    return found


def _time(when: datetime | None) -> str:
    return (datetime.now(UTC) if when is None else when).strftime("%Y-%m-%dT%H:%M:%SZ")


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _word(text: str) -> str:
    is_word = text and text.isprintable() and not any(letter in text for letter in " \"'")
    return text if is_word else json.dumps(printable(text), ensure_ascii=False)


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {str(name): _finite(item) for name, item in value.items()}  # type: ignore[reportUnknownVariableType]
    return None if isinstance(value, float) and not math.isfinite(value) else value
