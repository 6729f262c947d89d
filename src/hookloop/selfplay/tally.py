"""How games ended, counted: the one place where wins, draws and games without a winner are told apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Literal

Outcome = Literal["first_win", "second_win", "draw", "cut_off"]

OUTCOMES: tuple[Outcome, ...] = ("first_win", "second_win", "draw", "cut_off")
_INFOS: Mapping[Outcome, Mapping[str, float]] = {
    outcome: {name: float(name == outcome) for name in OUTCOMES} for outcome in OUTCOMES
}


def outcome_of(first_return: float, *, is_cut_off: bool = False) -> Outcome:
    """Return how a game ended, by what the first seat got; a game that was cut off has no winner, and is no draw."""
    if is_cut_off:
        return "cut_off"
    if first_return == 0:
        return "draw"
    return "first_win" if first_return > 0 else "second_win"


def as_numbers(outcome: Outcome) -> Mapping[str, float]:
    """Return an outcome as numbers whose means are rates."""
    return _INFOS[outcome]


@dataclass(slots=True)
class Tally:
    """Games by how they ended."""

    first_wins: int = 0
    second_wins: int = 0
    draws: int = 0
    cut_off: int = 0

    def add(self, outcome: Outcome) -> None:
        """Count one game."""
        name = _COUNTERS[outcome]
        setattr(self, name, getattr(self, name) + 1)

    @property
    def games(self) -> int:
        """How many there were."""
        return self.first_wins + self.second_wins + self.draws + self.cut_off

    def rates(self) -> dict[str, float]:
        """Return the share of each outcome, by the counter's name; nothing before the first game."""
        games = self.games
        return {name: count / games for name, count in asdict(self).items()} if games else {}

    @classmethod
    def sum(cls, saved: Iterable[Mapping[str, int]]) -> Tally:
        """Return the sum of saved counters."""
        parts = list(saved)
        return cls(**{name: sum(int(part[name]) for part in parts) for name in asdict(cls())})

    def state_dict(self) -> dict[str, int]:
        """Return the counters."""
        return asdict(self)

    def load_state_dict(self, saved: Mapping[str, int]) -> None:
        """Go on counting from saved counters."""
        for name in asdict(self):
            setattr(self, name, int(saved[name]))


_COUNTERS: Mapping[Outcome, str] = {
    "first_win": "first_wins", "second_win": "second_wins", "draw": "draws", "cut_off": "cut_off",
}  # fmt: skip
