"""What a policy thinks of single positions: the probability of every legal move, and who stands better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from hookloop.errors import CheckpointError
from hookloop.rl.policies import Policy
from hookloop.rl.specs import Array
from hookloop.selfplay.build import build_policy
from hookloop.selfplay.config import SelfPlayConfig
from hookloop.selfplay.games import GameEnvs
from hookloop.selfplay.library import Game, State
from hookloop.selfplay.observing import Observer

MOST_AT_ONCE = 256
"""Positions that the network looks at together."""


@dataclass(frozen=True, slots=True)
class Thoughts:
    """What a policy makes of one position."""

    moves: tuple[int, ...]
    """The legal ones."""
    logits: Array
    """One for each of them."""
    value: float
    """What whoever is to move expects, from -1 to 1."""

    def probabilities(self, temperature: float = 1.0) -> Array:
        """Return how likely each legal move is to be chosen; at a temperature of 0 only the likeliest is."""
        if temperature == 0:
            return (np.arange(len(self.moves)) == self.logits.argmax()).astype(np.float64)
        scaled = (self.logits - self.logits.max()).astype(np.float64) / temperature
        weights = np.exp(scaled)
        return weights / weights.sum()

    def probability(self, move: int) -> float:
        """Return how likely a legal move is, as in training."""
        return float(self.probabilities()[self.moves.index(move)])


class Thinker:
    """Looks at positions with a policy; nothing about the policy or its random numbers changes by it.

    Args:
        game: The game.
        policy: What thinks.
    """

    def __init__(self, game: Game, policy: Policy) -> None:
        self.game, self.policy = game, policy
        self._observer = Observer(game)

    def think(self, states: Sequence[State]) -> list[Thoughts]:
        """Return what the policy makes of each of these positions, in none of which the game is over."""
        found: list[Thoughts] = []
        for begin in range(0, len(states), MOST_AT_ONCE):
            found += self._think(states[begin : begin + MOST_AT_ONCE])
        return found

    def choose(self, state: State, *, temperature: float, random: np.random.Generator) -> int:
        """Return a legal move: the likeliest at a temperature of 0, else drawn."""
        thoughts = self.think([state])[0]
        return thoughts.moves[int(random.choice(len(thoughts.moves), p=thoughts.probabilities(temperature)))]

    def _think(self, states: Sequence[State]) -> list[Thoughts]:
        planes = np.zeros((len(states), *self._observer.shape), np.float32)
        for row, state in zip(planes, states, strict=True):
            self._observer.write(state, state.current_player(), row)
        with torch.no_grad():
            parameters, values = self.policy.forward(torch.from_numpy(planes))
        legal = [tuple(state.legal_actions()) for state in states]
        return [
            Thoughts(moves, logits[list(moves)], value)
            for moves, logits, value in zip(legal, parameters.numpy(), values.tolist(), strict=True)
        ]


def load_thinker(config: SelfPlayConfig, workload: Mapping[str, Any]) -> Thinker:
    """Return what thinks with the weights of a checkpoint.

    Args:
        config: The settings of the run.
        workload: The part of the saved state that the workload wrote.
    """
    envs = GameEnvs(config.game.name, 1)
    policy = build_policy(config.network, envs)
    try:
        policy.load_state_dict(dict(workload["learner"]["policy"]))
    except (LookupError, TypeError, RuntimeError) as error:
        raise CheckpointError(
            f"The checkpoint does not fit the settings of its run ({type(error).__name__}: {error})."
        ) from error
    return Thinker(envs.game, policy)
