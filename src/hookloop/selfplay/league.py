"""How strong a network is, time after time: matches, ratings, a champion, and how it came to be one."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from hookloop.core import derive_seed
from hookloop.errors import ConfigError
from hookloop.rl.policies import Policy
from hookloop.selfplay.games import EndedGame
from hookloop.selfplay.match import play_match
from hookloop.selfplay.players import NetworkPlayer, make_opponent
from hookloop.selfplay.pool import OpponentPool, Version
from hookloop.selfplay.rating_fit import fit_ratings
from hookloop.selfplay.ratings import Rating, Score, wilson_interval

Plain = Any


@dataclass(frozen=True, slots=True)
class Promotion:
    """A version that has become the champion."""

    version: str
    parent: str
    """The champion before it; for the first one, who the ratings are measured from."""
    epochs: int
    elo: float
    score: float
    """Points per game against the champion before it, or whom the ratings are measured from."""


@dataclass(frozen=True, slots=True)
class Round:
    """What one evaluation has found."""

    version: str
    scores: Mapping[str, Score]
    """By opponent, as the version sees them."""
    ratings: Mapping[str, Rating]
    """Of everybody who has ever played, by name."""
    games: Mapping[str, int]
    """How many games each of those ratings rests on."""
    fixed: tuple[str, ...]
    """The opponents that never change."""
    champion: str
    promotion: Promotion | None
    champion_before: str | None = None
    """The version that was champion when the round was played."""
    last_games: Mapping[str, tuple[EndedGame, int]] = field(
        default_factory=dict[str, tuple[EndedGame, int]], compare=False
    )
    """The game that ended last in each match, by opponent, and the seat that the version had in it."""

    @property
    def rating(self) -> Rating:
        """The version's own."""
        return self.ratings[self.version]

    def metrics(self) -> dict[str, float]:
        """Return scores by opponent, and the rating with its interval; past versions go by what they are here."""
        found: dict[str, float] = {}
        for name, score in self.scores.items():
            role = name if name in self.fixed else "champion" if name == self.champion_before else "past_version"
            found[f"{role}/score"] = score.mean
        return {**found, "rating": self.rating.elo, "rating_low": self.rating.low, "rating_high": self.rating.high}


class League:
    """Plays matches with versions of a network, rates them, and keeps a champion.

    Args:
        game: The game.
        opponents: Opponents that never change, by name; the first of them has rating 0.
        games: Games of each match.
        capacity: Past versions to keep for matches, the champion besides.
        opening_moves: Moves at random that matches between versions begin with: a version always plays its best move,
            so two of them would play the same two games over and over.
        promote_above: A version becomes the champion when the lower end of the 95 % interval of its score against
            the champion is above this.
        max_moves: A game is cut off after so many moves.
    """

    def __init__(
        self,
        game: str,
        *,
        opponents: Sequence[str] = ("random",),
        games: int = 64,
        capacity: int = 4,
        opening_moves: int = 2,
        promote_above: float = 0.5,
        max_moves: int | None = None,
    ) -> None:
        if not opponents or len(set(opponents)) < len(opponents):
            raise ConfigError(f"A league needs at least one opponent that never changes, each once; got {opponents}.")
        for name in opponents:
            make_opponent(name)  # to refuse an unknown one now, and not after an hour
        self.game, self.opponents, self.games = game, tuple(opponents), games
        self.opening_moves, self.promote_above, self.max_moves = opening_moves, promote_above, max_moves
        self.pool = OpponentPool(capacity)
        self.results: dict[tuple[str, str], Score] = {}
        self.promotions: list[Promotion] = []

    @property
    def anchor(self) -> str:
        """Who has rating 0."""
        return self.opponents[0]

    def play_round(self, policy: Policy, epochs: int, seed: int) -> Round:
        """Evaluate a copy of a policy, promote it if it has earned it, and keep it for rounds to come.

        Args:
            policy: What to evaluate.
            epochs: How long it has been trained; its name follows from it.
            seed: The root of all randomness; what is drawn depends on the epoch besides, and on nothing else.
        """
        version, seed = f"epoch-{epochs}", derive_seed(seed, "league", epochs)
        candidate = copy.deepcopy(policy).eval()
        last: dict[str, tuple[EndedGame, int]] = {}
        scores = {name: self._against_fixed(candidate, name, seed, last) for name in self.opponents}
        for past in self._past_opponents(version, seed):
            scores[past.name] = self._against_version(candidate, past, seed, last)
        self.results |= {(version, name): score for name, score in scores.items()}
        ratings = fit_ratings(self.results, anchor=self.anchor)
        before = None if self.pool.champion is None else self.pool.champion.name
        self.pool.add(version, policy.state_dict())
        promotion = self._promotion(version, before, epochs, scores, ratings[version])
        if promotion is not None:
            self.pool.crown(version)
            self.promotions.append(promotion)
        assert self.pool.champion is not None
        champion_now = self.pool.champion.name
        return Round(version, scores, ratings, self._games(), self.opponents, champion_now, promotion, before, last)

    def state_dict(self) -> dict[str, Plain]:
        """Return everything that ratings and promotions rest on."""
        return {
            "pool": self.pool.state_dict(),
            "results": [[one, other, *asdict(score).values()] for (one, other), score in self.results.items()],
            "promotions": [asdict(promotion) for promotion in self.promotions],
        }

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on from a saved state."""
        self.pool.load_state_dict(saved["pool"])
        self.results = {(one, other): Score(*counts) for one, other, *counts in saved["results"]}
        self.promotions = [Promotion(**each) for each in saved["promotions"]]

    def _games(self) -> dict[str, int]:
        """Return how many games everybody has played."""
        found: dict[str, int] = {}
        for pair, score in self.results.items():
            for name in pair:
                found[name] = found.get(name, 0) + score.games
        return found

    def _past_opponents(self, version: str, seed: int) -> list[Version]:
        """Return the champion, and one of the other past versions."""
        champion = self.pool.champion
        found = [] if champion is None else [champion]
        others = [each for each in self.pool.versions if champion is None or each.name != champion.name]
        if others:
            generator = torch.Generator().manual_seed(derive_seed(seed, "past"))
            found.append(others[int(torch.randint(len(others), (), generator=generator))])
        return [each for each in found if each.name != version]

    def _against_fixed(self, candidate: Policy, name: str, seed: int, last: dict[str, tuple[EndedGame, int]]) -> Score:
        return play_match(
            self.game,
            NetworkPlayer(candidate),
            make_opponent(name, derive_seed(seed, name)),
            games=self.games,
            max_moves=self.max_moves,
            show=lambda *game: last.update({name: game}),
        )

    def _against_version(
        self, candidate: Policy, past: Version, seed: int, last: dict[str, tuple[EndedGame, int]]
    ) -> Score:
        opponent = copy.deepcopy(candidate)
        opponent.load_state_dict(dict(past.weights))
        return play_match(
            self.game,
            NetworkPlayer(candidate),
            NetworkPlayer(opponent),
            games=self.games,
            max_moves=self.max_moves,
            opening_moves=self.opening_moves,
            seed=derive_seed(seed, "openings", past.name),
            show=lambda *game: last.update({past.name: game}),
        )

    def _promotion(
        self, version: str, before: str | None, epochs: int, scores: Mapping[str, Score], rating: Rating
    ) -> Promotion | None:
        """Return the promotion that a version has earned; the first one has nobody to beat."""
        if before == version:
            return None
        parent = self.anchor if before is None else before
        score = scores[parent]
        promotion = Promotion(version, parent, epochs, rating.elo, score.mean)
        if before is None:
            return promotion
        low, _ = wilson_interval(score.mean, score.games)
        return promotion if low > self.promote_above else None
