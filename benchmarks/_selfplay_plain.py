"""Self-play as one writes it over OpenSpiel's Python calls: a loop over the games, batched only for the network."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from hookloop.selfplay.library import State, load_game
from hookloop.selfplay.step_manager import Transition


class PlainLoop:
    """Plays games one after the other, with one forward for all of them at each step.

    Args:
        game: Its name.
        num_games: How many are under way.
        network: What moves; the observation has one plane more than the library's, which tells the seat.
        asks_for_masks: Take the library's mask, a list of all actions; else make it from the list of legal ones.
        seed: The root of all randomness.
    """

    def __init__(self, game: str, num_games: int, network: nn.Module, *, asks_for_masks: bool, seed: int = 0) -> None:
        self.game = load_game(game)
        self.shape: Any = self.game.observation_tensor_shape()
        self.network = network
        self.asks_for_masks = asks_for_masks
        self.rng = np.random.default_rng(seed)
        self.states: list[State] = [self.game.new_initial_state() for _ in range(num_games)]
        self.kept: list[Transition] = []

    def play(self, steps: int) -> None:
        """Make so many moves in each game, and keep them in place of those before."""
        self.kept = []
        for _ in range(steps):
            seen = [self.look(state) for state in self.states]
            with torch.inference_mode():
                logits, values = self.network(torch.from_numpy(np.stack([obs for obs, _ in seen])))
            for place, (obs, mask) in enumerate(seen):
                self.move(place, obs, mask, logits.numpy()[place], float(values.numpy()[place]))

    def look(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """Return what the seat to move sees and may do."""
        shown = np.array(state.observation_tensor(), np.float32).reshape(self.shape)
        seat = np.full((1, *self.shape[1:]), state.current_player(), np.float32)
        if self.asks_for_masks:
            return np.concatenate([shown, seat]), np.array(state.legal_actions_mask(), bool)
        mask = np.zeros(self.game.num_distinct_actions(), bool)
        mask[state.legal_actions()] = True
        return np.concatenate([shown, seat]), mask

    def move(self, place: int, obs: np.ndarray, mask: np.ndarray, logits: np.ndarray, value: float) -> None:
        """Draw a move, make it, keep it, and begin another game where one has ended."""
        state = self.states[place]
        seat, legal = state.current_player(), state.legal_actions()
        weights = np.exp(logits[legal] - logits[legal].max(), dtype=np.float64)
        weights /= weights.sum()
        chosen = int(self.rng.choice(len(legal), p=weights))
        state.apply_action(legal[chosen])
        done = state.is_terminal()
        reward = state.returns()[seat] if done else 0.0
        self.kept.append(
            Transition(obs, mask, seat, legal[chosen], float(np.log(weights[chosen])), value, reward, done)
        )
        if done:
            self.states[place] = self.game.new_initial_state()
