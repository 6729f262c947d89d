"""A game that has ended, as arrays for a replay: its positions, its moves, and what the policy thought of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hookloop.boards import seat_names
from hookloop.rl.specs import Array
from hookloop.selfplay.games import EndedGame
from hookloop.selfplay.library import State
from hookloop.selfplay.thinking import Thinker
from hookloop.selfplay.watching import GameRecord

KIND = "game"
MOST_CHOICES = 16
"""Games with more moves are recorded without the probability of each."""


def record_game(ended: EndedGame, thinker: Thinker) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return what a replay says of a game, and its arrays, one row for each move.

    ``boards`` are the positions after the moves, as the library writes them. Rewards and values are those of the
    first seat.

    Args:
        ended: The game.
        thinker: What it is thought over with, as it is now.
    """
    game, history = thinker.game, ended.state.history()
    record = GameRecord(game)
    begins = record.text
    before: list[State] = []
    boards: list[str] = []
    for action in history:
        before.append(record.state.clone())
        record.play(action)
        boards.append(record.text)
    seats = np.array([move.seat for move in record.moves], np.int8)
    thoughts = thinker.think(before)
    returned = 0.0 if ended.outcome == "cut_off" else float(ended.state.returns()[0])
    arrays = {
        "rewards": np.zeros(len(history), np.float32),
        "actions": np.array(history, np.int32),
        "seats": seats,
        "values": np.array([each.value for each in thoughts], np.float32) * np.where(seats == 0, 1, -1),
        "chosen_probabilities": np.array(
            [each.probability(move) for each, move in zip(thoughts, history, strict=True)], np.float32
        ),
        "boards": _texts(boards),
        "moves": _texts([move.text for move in record.moves]),
    }
    arrays["rewards"][-1] = returned
    arrays["values"] = arrays["values"].astype(np.float32)
    choices = game.num_distinct_actions()
    if choices <= MOST_CHOICES:
        probabilities = np.zeros((len(history), choices), np.float32)
        for row, each in zip(probabilities, thoughts, strict=True):
            row[list(each.moves)] = each.probabilities()
        arrays["probabilities"] = probabilities
    first, second = seat_names(record.name)
    about: dict[str, Any] = {
        "kind": KIND, "game": record.name, "environment": str(game), "first": first, "second": second,
        "begins": begins, "return": returned, "length": len(history), "end": ended.outcome,
    }  # fmt: skip
    return about, arrays


def _texts(texts: Sequence[str]) -> Array:
    """Return texts as rows of bytes, filled up with zeros."""
    encoded = [text.encode() for text in texts]
    rows = np.zeros((len(encoded), max(1, *map(len, encoded))), np.uint8)
    for row, content in zip(rows, encoded, strict=True):
        row[: len(content)] = np.frombuffer(content, np.uint8)
    return rows
