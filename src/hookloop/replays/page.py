"""A replay as one page: no file beside it, no request to anybody, a player in it."""

from __future__ import annotations

import html
import json
import math
import re
from importlib.resources import files
from typing import Any

import numpy as np

from hookloop.replays.files import Array, Replay
from hookloop.replays.games import is_game, page_data
from hookloop.replays.pictures import is_picture, pictures_of
from hookloop.replays.text import summary

MOST_STEPS = 20_000
MOST_CURVES = 16
MOST_NUMBERS = 64
DIGITS = 6
_PLACE = re.compile("__TITLE__|__DATA__|__BOARD_STYLE__|__BOARD_SCRIPT__")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def replay_page(replay: Replay) -> str:
    """Return the page."""
    template = _asset("hookloop.replays", "player.html")
    # In a script, "<" could end it; as an escape it means the same and ends nothing.
    data = json.dumps(_data(replay), allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    parts = {
        "__TITLE__": html.escape(summary(replay)),
        "__DATA__": data,
        "__BOARD_STYLE__": _asset("hookloop.boards", "board.css"),
        "__BOARD_SCRIPT__": _asset("hookloop.boards", "board.js"),
    }
    # In one pass: what stands in one part is not looked at for another.
    return _PLACE.sub(lambda place: parts[place[0]], template)


def _asset(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8")


def _data(replay: Replay) -> dict[str, Any]:
    arrays, steps = replay.arrays, min(replay.steps, MOST_STEPS)
    found: dict[str, Any] = {
        "about": {name: value for name, value in replay.about.items() if value is not None},
        "steps": steps,
        "rewards": _numbers(arrays["rewards"][:steps]),
    }
    if "actions" in arrays:
        found["actions"] = [_row(row) for row in arrays["actions"][:steps]]
    if "values" in arrays and arrays["values"].ndim == 1:
        found["values"] = _numbers(arrays["values"][:steps])
    if "probabilities" in arrays and arrays["probabilities"].ndim == 2:
        found["probabilities"] = [_numbers(row) for row in arrays["probabilities"][:steps, :MOST_CURVES]]
    return {**found, **_seen(replay, steps)}


def _seen(replay: Replay, steps: int) -> dict[str, Any]:
    """Return what is shown of the environment: its frames, its boards, or its observations."""
    if is_game(replay):
        return page_data(replay, steps)
    if "boards" in replay.arrays:
        return {"boards": [_without_colours(replay.board(step) or "") for step in range(steps)]}
    shown = {name: array for name, array in replay.arrays.items() if name == "frames" or name.startswith("observation")}
    picture = next((array for array in shown.values() if is_picture(array)), None)
    found: dict[str, Any] = {}
    if picture is not None:
        found["pictures"], found["stride"] = pictures_of(picture[:steps])
    if "frames" not in replay.arrays:
        rows = {name: array[:steps] for name, array in shown.items() if not is_picture(array)}
        found["observations"] = {name: [_row(row) for row in array] for name, array in rows.items()}
    return found


def _without_colours(board: str) -> str:
    """Return a board without the codes by which a terminal is told colours."""
    return _COLOUR.sub("", board)


def _row(row: Any) -> list[float | None]:
    return _numbers(np.ravel(row)[:MOST_NUMBERS])


def _numbers(values: Array) -> list[float | None]:
    """Return numbers as JSON can hold them: short, and null for what is not finite."""
    return [float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None for value in values.tolist()]
