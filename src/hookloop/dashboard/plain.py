"""A run as the plain data that a page draws. The version changes when what is there changes its meaning."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hookloop.boards import view_as_plain
from hookloop.display import RunView
from hookloop.display.board_note import OLD_SECONDS
from hookloop.runs.standing import KILLED
from hookloop.runs.watched_run import GONE

Plain = Any

VIEW_VERSION = 1


def run_as_plain(view: RunView) -> dict[str, Plain]:
    """Return a view of a run as mappings, lists, texts and numbers; None is what is not known."""
    return {
        "version": VIEW_VERSION,
        "run": view.run,
        "recipe": view.recipe,
        "attempt": view.attempt,
        "status": KILLED if view.status == GONE else view.status,
        "is_on": view.is_ticking,
        "reason": view.reason,
        "step": view.step,
        "total_steps": view.total_steps,
        "progress": view.progress,
        "unit": view.unit,
        "epoch": view.epoch,
        "steps_per_second": view.steps_per_second,
        "elapsed_seconds": view.elapsed_seconds,
        "eta_seconds": view.eta_seconds if view.is_ticking else None,
        "latest": {name: curve.latest for name, curve in view.ordered_curves.items()},
        "evaluations": [asdict(each) for each in view.evaluations],
        "checkpoint": None if view.checkpoint is None else asdict(view.checkpoint),
        "phases": dict(view.phases),
        "hooks": dict(sorted(view.hooks.items(), key=lambda item: -item[1])),
        "failures": [asdict(each) for each in view.failures],
        "game": None if view.game is None else view_as_plain(view.game),
        "game_fault": view.game_fault,
        "game_age_seconds": view.game_age_seconds,
        "is_game_old": view.game_age_seconds is not None and view.game_age_seconds >= OLD_SECONDS,
    }
