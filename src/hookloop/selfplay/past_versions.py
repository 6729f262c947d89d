"""Games of training against past versions: who has learned to beat itself should not forget how to beat the rest."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hookloop.errors import ConfigError
from hookloop.rl.envs import Episode
from hookloop.rl.policies import Policy
from hookloop.rl.specs import Array
from hookloop.selfplay.games import GameEnvs
from hookloop.selfplay.pool import OpponentPool
from hookloop.selfplay.ratings import Score, score_of

Plain = Any


class PastPlayer:
    """Moves for a past version in a share of the games, of which only the learner's own moves are learned from.

    These are the first games of the batch, and the past version has the second seat in every other of them, the
    first in the rest. In the next slot it is the other way round, so that a single game in each is fair, too.

    Args:
        policy: The learner; a copy of it plays with other weights.
        num_games: In how many games a past version plays.
    """

    def __init__(self, policy: Policy, num_games: int) -> None:
        if policy.is_recurrent:
            raise ConfigError("Past versions cannot play for a policy with memory; leave opponents.share at 0.")
        self.score = Score()
        """How the learner has done in the latest collection."""
        self.policy = copy.deepcopy(policy).eval()
        self.is_playing = False
        """Whether there is a version that plays; until there is one, the learner plays all games against itself."""
        seats = (np.arange(num_games + 1) % 2).astype(np.int8)
        self._seats_by_slot = (seats[1:], seats[:-1])
        self._seats = self._seats_by_slot[0]
        self._is_its_turn = np.empty(num_games, dtype=bool)
        shape = policy.observation_spec.array.shape
        self._obs = torch.empty((num_games, *shape), dtype=torch.float32)
        self._masks = torch.empty((num_games, policy.head.num_parameters), dtype=torch.bool)

    def take(self, weights: Mapping[str, Tensor] | None) -> None:
        """Play with these weights from now on, or, given none, not at all."""
        self.is_playing = weights is not None
        if weights is not None:
            self.policy.load_state_dict(dict(weights))

    def begin(self, slot: int = 0) -> None:
        """Count anew, and sit down in the games of a slot."""
        self.score = Score()
        self._seats = self._seats_by_slot[slot % 2]

    def move(self, games: GameEnvs, actions: Array, valid: Array, generator: torch.Generator) -> None:
        """Write the moves of the past version over the learner's where it is its turn, and mark them as not its own."""
        valid.fill(True)
        if not self.is_playing:
            return
        num_games = len(self._seats)
        np.equal(games.seats[:num_games], self._seats, out=self._is_its_turn)
        rows = np.flatnonzero(self._is_its_turn)
        if rows.size:
            obs, masks = self._obs[: rows.size], self._masks[: rows.size]
            # Clipping, which never happens, lets numpy write straight into the memory it is given.
            np.take(games.planes, rows, axis=0, out=obs.numpy(), mode="clip")
            np.take(games.masks, rows, axis=0, out=masks.numpy(), mode="clip")
            actions[rows] = self.policy.act(obs, mask=masks, generator=generator).actions.numpy()
            np.logical_not(self._is_its_turn, out=valid[:num_games])

    def note(self, finished: Sequence[Episode]) -> None:
        """Count the games against the past version that have ended."""
        if self.is_playing:
            for episode in finished:
                if episode.env_index < len(self._seats):
                    own = episode.return_ if self._seats[episode.env_index] == 1 else -episode.return_
                    self.score += score_of(own)


class PastVersions:
    """Keeps past versions, and draws the one that plays: another for each collection.

    Args:
        policy: The learner.
        num_games: In how many games a past version plays.
        capacity: How many versions are kept.
        every_epochs: A version is added after so many epochs.
        seed: The root of the draws.
    """

    def __init__(self, policy: Policy, num_games: int, *, capacity: int, every_epochs: int, seed: int) -> None:
        self.pool = OpponentPool(capacity)
        self.every_epochs = every_epochs
        self.player = PastPlayer(policy, num_games)
        """Who moves for them."""
        self._generator = torch.Generator().manual_seed(seed)

    def begin(self) -> None:
        """Draw who plays in the coming collection."""
        version = self.pool.sample(self._generator)
        self.player.take(None if version is None else version.weights)

    def end(self, policy: Policy, epochs: int) -> None:
        """Keep the policy as a version, if it is time for one."""
        if epochs % self.every_epochs == 0:
            self.pool.add(f"epoch-{epochs}", policy.state_dict())

    def metrics(self) -> dict[str, float]:
        """Return how many versions there are, and how the learner does against them."""
        found, score = {"opponents/count": float(len(self.pool))}, self.player.score
        return {**found, "opponents/score": score.mean} if score.games else found

    def perturb(self, seed: int) -> None:
        """Draw others from here on."""
        self._generator.manual_seed(seed)

    def state_dict(self) -> dict[str, Plain]:
        """Return the versions and the random stream."""
        return {"pool": self.pool.state_dict(), "generator": self._generator.get_state().clone()}

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on from a saved state."""
        self.pool.load_state_dict(saved["pool"])
        self._generator.set_state(saved["generator"])
