"""Games of training against past versions: who has learned to beat itself should not forget how to beat the rest."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from hookloop.errors import ConfigError
from hookloop.rl.envs import Episode
from hookloop.rl.policies import Policy
from hookloop.rl.specs import Array
from hookloop.selfplay.games import GameEnvs
from hookloop.selfplay.pool import OpponentPool
from hookloop.selfplay.ratings import Score, score_of

Plain = Any


class PastVersions:
    """Moves for a past version in a share of the games, of which only the learner's own moves are learned from.

    These are the first games of the batch, and the past version has the second seat in every other of them, the
    first in the rest. One version plays for the length of a collection; then another is drawn. Until there is one, the
    policy plays all games against itself.

    Args:
        policy: The learner; a copy of it plays with other weights.
        num_games: In how many games a past version plays.
        capacity: How many versions are kept.
        every_epochs: A version is added after so many epochs.
        seed: The root of its randomness, which is apart from the learner's.
    """

    def __init__(self, policy: Policy, num_games: int, *, capacity: int, every_epochs: int, seed: int) -> None:
        if policy.is_recurrent:
            raise ConfigError("Past versions cannot play for a policy with memory; leave opponents.share at 0.")
        self.pool = OpponentPool(capacity)
        self.every_epochs = every_epochs
        self.score = Score()
        """How the learner has done against them in the latest collection."""
        self._player = copy.deepcopy(policy).eval()
        self._generator = torch.Generator().manual_seed(seed)
        self._seats = (1 - np.arange(num_games) % 2).astype(np.int8)
        self._is_playing = False

    def begin(self) -> None:
        """Draw who plays in the coming collection."""
        self.score = Score()
        version = self.pool.sample(self._generator)
        self._is_playing = version is not None
        if version is not None:
            self._player.load_state_dict(dict(version.weights))

    def move(self, games: GameEnvs, actions: Array, valid: Array) -> None:
        """Write the moves of the past version over the learner's where it is its turn, and mark them as not its own."""
        valid.fill(True)
        if not self._is_playing:
            return
        rows = np.flatnonzero(games.seats[: len(self._seats)] == self._seats)
        if rows.size:
            obs, masks = torch.from_numpy(games.planes[rows]), torch.from_numpy(games.masks[rows])
            actions[rows] = self._player.act(obs, mask=masks, generator=self._generator).actions.numpy()
            valid[rows] = False

    def note(self, finished: Sequence[Episode]) -> None:
        """Count the games against the past version that have ended."""
        if self._is_playing:
            for episode in finished:
                if episode.env_index < len(self._seats):
                    own = episode.return_ if self._seats[episode.env_index] == 1 else -episode.return_
                    self.score += score_of(own)

    def end(self, policy: Policy, epochs: int) -> None:
        """Keep the policy as a version, if it is time for one."""
        if epochs % self.every_epochs == 0:
            self.pool.add(f"epoch-{epochs}", policy.state_dict())

    def metrics(self) -> dict[str, float]:
        """Return how many versions there are, and how the learner does against them."""
        found = {"opponents/count": float(len(self.pool))}
        return {**found, "opponents/score": self.score.mean} if self.score.games else found

    def perturb(self, seed: int) -> None:
        """Play with other random numbers from here on."""
        self._generator.manual_seed(seed)

    def state_dict(self) -> dict[str, Plain]:
        """Return the versions and the random stream."""
        return {"pool": self.pool.state_dict(), "generator": self._generator.get_state().clone()}

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on from a saved state."""
        self.pool.load_state_dict(saved["pool"])
        self._generator.set_state(saved["generator"])
