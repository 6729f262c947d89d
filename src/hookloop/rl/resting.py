"""The memory of recurrent policies in episodes that rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from hookloop.rl.envs import Move

Plain = Any
State = Any
"""A tensor [B, ...], or a tuple of such."""


class RestingMemory:
    """Keeps the rows of a policy's memory whose episodes rest, and gives them back when those go on."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, str], list[Tensor]] = {}

    def change(self, memory: list[Tensor], moves: Sequence[Move]) -> None:
        """Put away, in place, what belongs to the lessons left; bring back what belongs to those entered, or zeros."""
        for move in moves:
            rows = move.rows
            self._kept[rows.start, move.left] = [leaf[rows].clone() for leaf in memory]
            kept = self._kept.pop((rows.start, move.entered), [0.0] * len(memory))
            for leaf, values in zip(memory, kept, strict=True):
                leaf[rows] = values

    def state_dict(self) -> list[Plain]:
        """Return all that is kept."""
        return [
            [start, lesson, [leaf.clone() for leaf in kept]]
            for (start, lesson), kept in sorted(self._kept.items(), key=_key)
        ]

    def load_state_dict(self, saved: Sequence[Plain]) -> None:
        """Go on with what was kept."""
        self._kept = {(int(start), str(lesson)): [leaf.clone() for leaf in kept] for start, lesson, kept in saved}


def leaves(state: State) -> list[Tensor]:
    """Return the tensors of a memory, in order."""
    return [state] if isinstance(state, Tensor) else [leaf for part in state for leaf in leaves(part)]


def _key(item: tuple[tuple[int, str], list[Tensor]]) -> tuple[int, str]:
    return item[0]
