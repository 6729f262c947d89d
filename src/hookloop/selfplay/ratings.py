"""Elo ratings, and how sure one can be of them after so many games."""

from __future__ import annotations

import math
from dataclasses import dataclass

SCALE = 400.0
"""A player rated so much higher is expected to score ten times as much as the other."""

CONFIDENT = 1.959963984540054
"""Standard deviations on either side of a mean within which 95 of 100 normal results lie."""


@dataclass(frozen=True, slots=True)
class Score:
    """The results of a match, as one of the two players sees them."""

    wins: int = 0
    draws: int = 0
    losses: int = 0

    @property
    def games(self) -> int:
        """How many were played."""
        return self.wins + self.draws + self.losses

    @property
    def mean(self) -> float:
        """Points per game: 1 for a win, half of one for a draw; a half before the first game."""
        return (self.wins + 0.5 * self.draws) / self.games if self.games else 0.5

    def __add__(self, other: Score) -> Score:
        return Score(self.wins + other.wins, self.draws + other.draws, self.losses + other.losses)

    def reversed(self) -> Score:
        """Return the same match as the other player sees it."""
        return Score(self.losses, self.draws, self.wins)


@dataclass(frozen=True, slots=True)
class Rating:
    """An estimate, and the interval that holds the truth in 95 of 100 cases; its ends may be infinite."""

    elo: float
    low: float
    high: float

    @property
    def deviation(self) -> float:
        """The standard deviation that an interval of this width speaks for."""
        return (self.high - self.low) / (2 * CONFIDENT)


def score_of(own_return: float) -> Score:
    """Return the score of one game, by what a player got in it."""
    return Score(int(own_return > 0), int(own_return == 0), int(own_return < 0))


def expected_score(rating: float, opponent: float) -> float:
    """Return the points per game that a player is expected to score."""
    return 1 / (1 + 10 ** ((opponent - rating) / SCALE))


def updated(rating: float, opponent: float, score: Score, *, k: float = 32.0) -> float:
    """Return a rating after a match: it moves by ``k`` for each point more or less than expected."""
    return rating + k * score.games * (score.mean - expected_score(rating, opponent))


def elo_difference(mean_score: float) -> float:
    """Return how much higher a player is rated who scores so many points per game; infinite at 0 and 1."""
    if mean_score <= 0:
        return -math.inf
    return math.inf if mean_score >= 1 else SCALE * math.log10(mean_score / (1 - mean_score))


def rating_from(score: Score, opponent: float = 0.0, *, deviations: float = CONFIDENT) -> Rating:
    """Return the rating that a match against an opponent of known rating speaks for.

    The interval is Wilson's, which does not break down when all games are won. Draws make results vary less than it
    assumes, so with many of them it is wider than need be, never narrower.
    """
    low, high = wilson_interval(score.mean, score.games, deviations)
    return Rating(
        opponent + elo_difference(score.mean), opponent + elo_difference(low), opponent + elo_difference(high)
    )


def wilson_interval(mean: float, count: int, deviations: float = CONFIDENT) -> tuple[float, float]:
    """Return Wilson's interval for a share that was observed in so many trials; all of it without any."""
    if count == 0:
        return 0.0, 1.0
    squared = deviations**2
    centre = (mean + squared / (2 * count)) / (1 + squared / count)
    spread = deviations / (1 + squared / count) * math.sqrt(mean * (1 - mean) / count + squared / (4 * count**2))
    # A share of none or all is an end of its interval, which rounding must not move.
    return 0.0 if mean == 0 else centre - spread, 1.0 if mean == 1 else centre + spread
