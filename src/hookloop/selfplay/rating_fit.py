"""Ratings of many players at once, from all the matches between them.

The model is Elo's own: a player who is rated d points higher is expected to score 1 / (1 + 10 ** (-d / 400)). The
ratings are those under which the results were likeliest, and the intervals follow from how sharply that likelihood
falls off. Half a game won and half a game lost is added to each match, so that nobody is rated infinitely high.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from hookloop.errors import ConfigError
from hookloop.selfplay.ratings import CONFIDENT, SCALE, Rating, Score

Results = Mapping[tuple[str, str], Score]
"""Matches by the two who played them, as the first of the two sees the score."""

PER_NAT = SCALE / math.log(10)
MOST_STEPS = 100
LONGEST_STEP = 2.0  # nats; from afar a step of Newton's method can be far too long
CLOSE_ENOUGH = 1e-9


def fit_ratings(results: Results, *, anchor: str) -> dict[str, Rating]:
    """Return the rating of everybody who played, on the scale where ``anchor`` has 0."""
    matches = {pair: score for pair, score in results.items() if score.games}
    players = [anchor, *sorted({name for pair in matches for name in pair} - {anchor})]
    _require_joined(players, matches)
    place = {name: k for k, name in enumerate(players)}
    first = np.array([place[one] for one, _ in matches], dtype=np.int64)
    second = np.array([place[other] for _, other in matches], dtype=np.int64)
    games = np.array([score.games + 1 for score in matches.values()], dtype=np.float64)
    points = np.array([score.wins + 0.5 * score.draws + 0.5 for score in matches.values()], dtype=np.float64)
    nats, variances = _likeliest(len(players), first, second, games, points)
    return {name: _rating(float(nats[k]), float(variances[k])) for name, k in place.items()}


def _likeliest(
    num_players: int,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    games: NDArray[np.float64],
    points: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the likeliest ratings and their variances, in nats, by Newton's method; player 0 stays at 0."""
    ratings, variances = np.zeros(num_players), np.zeros(num_players)
    for _ in range(MOST_STEPS if num_players > 1 else 0):
        expected = 1 / (1 + np.exp(ratings[second] - ratings[first]))
        surplus, weights = points - games * expected, games * expected * (1 - expected)
        slope, information = np.zeros(num_players), np.zeros((num_players, num_players))
        np.add.at(slope, first, surplus)
        np.add.at(slope, second, -surplus)
        for one, other, sign in ((first, first, 1), (second, second, 1), (first, second, -1), (second, first, -1)):
            np.add.at(information, (one, other), sign * weights)
        covariance = np.linalg.inv(information[1:, 1:])
        step = covariance @ slope[1:]
        longest = float(np.abs(step).max())
        ratings[1:] += step * min(1.0, LONGEST_STEP / max(longest, CLOSE_ENOUGH))
        variances[1:] = covariance.diagonal()
        if longest < CLOSE_ENOUGH:
            break
    return ratings, variances


def _rating(nats: float, variance: float) -> Rating:
    elo, spread = PER_NAT * nats, PER_NAT * CONFIDENT * math.sqrt(variance)
    return Rating(elo, elo - spread, elo + spread)


def _require_joined(players: Iterable[str], matches: Results) -> None:
    """Refuse players whom no chain of matches joins to the first: nothing says how strong they are beside it."""
    first, *rest = players
    joined, frontier = {first}, [first]
    while frontier:
        name = frontier.pop()
        near = {other for pair in matches if name in pair for other in pair} - joined
        joined |= near
        frontier += near
    apart = sorted(set(rest) - joined)
    if apart:
        raise ConfigError(
            f"{', '.join(apart)} cannot be rated: no match, and no chain of matches, joins them to {first}."
        )
