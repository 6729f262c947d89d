"""Who can play: the policy, and opponents that never change, for a measure of its strength."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
import torch

from hookloop.errors import ConfigError
from hookloop.rl.policies import Policy
from hookloop.rl.specs import Array
from hookloop.selfplay.games import GameEnvs
from hookloop.selfplay.library import State


class Player(Protocol):
    """Chooses moves in many games at once."""

    def choose(self, games: GameEnvs, rows: Array) -> Array:
        """Return a legal move for each of these games."""
        ...


class RandomPlayer:
    """Makes any legal move.

    Args:
        seed: The root of its randomness.
    """

    def __init__(self, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)

    def choose(self, games: GameEnvs, rows: Array) -> Array:
        """Return a legal move for each of these games."""
        masks = games.masks[rows]
        return (self._random.random(masks.shape) * masks).argmax(axis=1)


class SearchPlayer:
    """Looks some moves ahead, at every one of them; what lies beyond is worth nothing to either seat.

    One move ahead is a greedy player: it wins where it can win at once. As many as a game has is perfect play. Among
    moves that look equally good it takes any.

    Args:
        depth: Moves to look ahead, its own included.
        seed: The root of its randomness.
    """

    def __init__(self, depth: int, seed: int = 0) -> None:
        if depth < 1:
            raise ConfigError(f"A search looks at least 1 move ahead, got a depth of {depth}.")
        self.depth = depth
        self._random = np.random.default_rng(seed)

    def choose(self, games: GameEnvs, rows: Array) -> Array:
        """Return a legal move for each of these games."""
        return np.array([self._best(games.states[row]) for row in rows.tolist()], dtype=np.int64)

    def _best(self, state: State) -> int:
        seat, moves = state.current_player(), state.legal_actions()
        values = [_worth(state.child(move), seat, self.depth - 1, -math.inf, math.inf) for move in moves]
        best = max(values)
        among = [move for move, value in zip(moves, values, strict=True) if value == best]
        return among[int(self._random.integers(len(among)))]


class NetworkPlayer:
    """Plays with a policy, as it is at the time of each move.

    Args:
        policy: What plays.
        greedy: Take the likeliest move; else draw, as in training.
        seed: The root of its randomness.
    """

    def __init__(self, policy: Policy, *, greedy: bool = True, seed: int = 0) -> None:
        self.policy = policy
        self.greedy = greedy
        self._generator = torch.Generator().manual_seed(seed)

    def choose(self, games: GameEnvs, rows: Array) -> Array:
        """Return a legal move for each of these games."""
        obs, masks = torch.from_numpy(games.planes[rows]), torch.from_numpy(games.masks[rows])
        acted = self.policy.act(obs, mask=masks, generator=self._generator, greedy=self.greedy)
        return acted.actions.numpy().copy()


def make_opponent(name: str, seed: int = 0) -> Player:
    """Return an opponent that never changes: ``random``, ``greedy``, or ``search-N`` for N moves ahead."""
    if name == "random":
        return RandomPlayer(seed)
    if name == "greedy":
        return SearchPlayer(1, seed)
    kind, _, depth = name.partition("-")
    if kind == "search" and depth.isdecimal():
        return SearchPlayer(int(depth), seed)
    raise ConfigError(f"There is no opponent {name!r}; there are 'random', 'greedy', and 'search-2' and deeper.")


def _worth(state: State, seat: int, depth: int, low: float, high: float) -> float:
    """Return what a position is worth to a seat, of which only what lies between low and high need be exact."""
    if state.is_terminal():
        return state.returns()[seat]
    if depth == 0:
        return 0.0
    is_own = state.current_player() == seat
    best = -math.inf if is_own else math.inf
    for move in state.legal_actions():
        value = _worth(state.child(move), seat, depth - 1, low, high)
        best = max(best, value) if is_own else min(best, value)
        low, high = (max(low, best), high) if is_own else (low, min(high, best))
        if low >= high:
            break
    return best
