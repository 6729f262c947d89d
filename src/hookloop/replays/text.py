"""A replay in words: one line per step, or one screen per step."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from hookloop.boards import Board, board_text
from hookloop.replays.files import Array, Replay
from hookloop.replays.games import board_at, is_game, move_at, players, result

Paint = Callable[[Board, tuple[str, str]], str]
"""Draws a board, given what the players are called."""

BAR_LETTERS = 24
MOST_SHOWN = 16
MOST_MOVES = 8
# A terminal obeys what it is shown. Colours are welcome; everything else that is no letter is not.
_COLOUR = re.compile(r"(\x1b\[[0-9;]{0,20}m)")
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


def summary(replay: Replay) -> str:
    """Return the line that says what is seen."""
    about = replay.about
    words = [str(about.get("environment", "an episode"))]
    if "env_steps" in about:
        words.append(f"after {_number(about['env_steps'])} steps of training")
    length = about.get("length", replay.steps)
    if is_game(replay):
        words.append(f"{result(replay)}, {length} moves")
    else:
        words.append(f"return {_number(about.get('return'))}, {length} steps")
        words += [str(about["end"])] if about.get("end") else []
    if replay.steps < int(about.get("length") or replay.steps):
        words.append(f"the first {replay.steps} recorded")
    return harmless(", ".join(words))


def step_line(replay: Replay, step: int) -> str:
    """Return one step as words for people and grep."""
    arrays = replay.arrays
    words = [f"step={step + 1}"]
    if is_game(replay):
        words.append(f"move={harmless(move_at(replay, step)).replace(' ', '_')}")
    elif "actions" in arrays:
        words.append(f"action={_action(arrays['actions'][step])}")
    words.append(f"reward={_number(arrays['rewards'][step])}")
    words.append(f"return={_number(arrays['rewards'][: step + 1].sum(dtype=np.float64))}")
    for name, short in (("values", "value"), ("chosen_probabilities", "p")):
        if name in arrays:
            words.append(f"{short}={_number(arrays[name][step])}")
    return " ".join(words)


def _plain(board: Board, names: tuple[str, str]) -> str:
    return board_text(board, names=names)


def step_screen(replay: Replay, step: int, paint: Paint = _plain) -> list[str]:
    """Return one step as lines: what was seen, what was done, and what the policy thought."""
    seen = _seen(replay, step)
    if is_game(replay):
        seen = [*harmless(paint(board_at(replay, step), players(replay))).splitlines(), "", _latest_moves(replay, step)]
    lines = [f"step {step + 1} of {replay.steps}", "", *seen, "", step_line(replay, step)]
    probabilities = replay.arrays.get("probabilities")
    if probabilities is not None and probabilities.ndim == 2:
        chosen = np.atleast_1d(replay.arrays["actions"][step]) if "actions" in replay.arrays else []
        for choice, share in enumerate(probabilities[step][:MOST_SHOWN]):
            mark = ">" if len(chosen) == 1 and int(chosen[0]) == choice else " "
            bar = "█" * round(float(share) * BAR_LETTERS) if np.isfinite(share) else ""
            lines.append(f"{mark} {choice:>3} {bar:<{BAR_LETTERS}} {float(share):.3f}")
    return lines


def _latest_moves(replay: Replay, step: int) -> str:
    first = max(step + 1 - MOST_MOVES, 0)
    return harmless("  ".join(f"{each + 1} {move_at(replay, each)}" for each in range(first, step + 1)))


def harmless(text: str) -> str:
    """Return a text from a file as it may be shown in a terminal."""
    parts = _COLOUR.split(text)
    return "".join(part if k % 2 else _CONTROL.sub("?", part) for k, part in enumerate(parts))


def _seen(replay: Replay, step: int) -> list[str]:
    board = replay.board(step)
    if board is not None:
        return [*harmless(board).splitlines(), "\x1b[0m" if "\x1b" in board else ""]
    found: list[str] = []
    for name, array in replay.arrays.items():
        if name.startswith("observations"):
            found.append(f"{harmless(name)}: {_few(array[step])}")
    return found


def _few(row: Array) -> str:
    flat = np.ravel(row)
    shown = " ".join(map(_number, flat[:MOST_SHOWN]))
    return shown if flat.size <= MOST_SHOWN else f"{shown} ... ({flat.size} numbers)"


def _action(action: Array) -> str:
    flat = np.ravel(action)
    return ",".join(map(_number, flat[:MOST_SHOWN]))


def _number(value: Any) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    return f"{value:.4g}" if isinstance(value, float) else str(value)
