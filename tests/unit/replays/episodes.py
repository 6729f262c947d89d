"""Small recorded episodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from hookloop.replays import Replay


def episode(steps: int = 5, *, frames: bool = False, boards: bool = False, **about: Any) -> Replay:
    """Return an episode of which one can say by heart what is in it: step t has the reward t."""
    ticks = np.arange(steps, dtype=np.float32)
    arrays: dict[str, Any] = {
        "observations": np.stack([np.arange(steps + 1), -np.arange(steps + 1)], 1).astype(np.float32),
        "actions": np.arange(steps) % 2,
        "rewards": ticks,
        "values": ticks * 10,
        "probabilities": np.stack([0.25 + 0 * ticks, 0.75 + 0 * ticks], 1),
        "chosen_probabilities": np.full(steps, 0.75, np.float32),
    }
    if frames:
        arrays["frames"] = np.zeros((steps, 6, 8, 3), np.uint8)
        for step in range(steps):
            arrays["frames"][step, :, step % 8] = 255
    if boards:
        texts = [f"+--+\n|{step:>2}|\n+--+".encode() for step in range(steps)]
        arrays["boards"] = np.stack([np.frombuffer(text, np.uint8) for text in texts])
    told = {"environment": "Counting-v0", "return": float(ticks.sum()), "length": steps, "end": "terminated", **about}
    return Replay(told, arrays)


def game(**about: Any) -> Replay:
    """Return a game of tic-tac-toe that the first player wins with the left column."""
    boards = ["x..\n...\n...", "xo.\n...\n...", "xo.\nx..\n...", "xo.\nxo.\n...", "xo.\nxo.\nx.."]
    moves = ["x(0,0)", "o(0,1)", "x(1,0)", "o(1,1)", "x(2,0)"]
    arrays: dict[str, Any] = {
        "rewards": np.array([0, 0, 0, 0, 1], np.float32),
        "actions": np.array([0, 1, 3, 4, 6], np.int32),
        "values": np.array([0.0, 0.1, 0.2, 0.3, 0.4], np.float32),
        "boards": np.stack([np.frombuffer(text.encode(), np.uint8) for text in boards]),
        "moves": np.stack([np.frombuffer(text.encode(), np.uint8) for text in moves]),
    }
    told = {
        "kind": "game", "game": "tic_tac_toe", "environment": "tic_tac_toe()", "first": "X", "second": "O",
        "return": 1.0, "length": 5, "end": "first_win", "env_steps": 640,
        "begins": "...\n...\n...", **about,
    }  # fmt: skip
    return Replay(told, arrays)
