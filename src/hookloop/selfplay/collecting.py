"""Collection and learning from games: as in reinforcement learning, with a sign for the seat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, cast

import numpy as np
import torch
from torch import Tensor

from hookloop.core import TrainingLoop, derive_seed
from hookloop.errors import WorkloadError
from hookloop.rl.collector import Collector, RolloutLoop
from hookloop.rl.experience import OBSERVATIONS, Experience, ExperienceSpec
from hookloop.rl.learner import Learner
from hookloop.rl.slots import VtraceLearner
from hookloop.rl.specs import ArraySpec
from hookloop.rl.vtrace import Floats, Vtrace
from hookloop.rl.workload import RLWorkload
from hookloop.selfplay.advantages import estimate_signed_advantages, signed_vtrace, signs_of
from hookloop.selfplay.games import EndedGame, GameEnvs
from hookloop.selfplay.past_versions import PastPlayer, PastVersions
from hookloop.selfplay.ratings import Score

Plain = Any


class GameCollector(Collector):
    """Fills the experience with the moves of both seats, and stores who made them."""

    columns: ClassVar[ExperienceSpec] = {"seats": ArraySpec((), "int8")}
    opponents: PastPlayer | None = None
    """Who plays in some of the games in place of the policy; by default nobody does."""
    slot: int = 0
    """Which slot's games these are, where there are several."""
    _ended_before: EndedGame | None = None

    @property
    def games(self) -> GameEnvs:
        """The games that are played."""
        return cast("GameEnvs", self.envs)

    @property
    def has_fillers(self) -> bool:
        """Whether some moves are not the policy's own, and nothing is learned from them."""
        return self.opponents is not None

    def collect(self, loop: RolloutLoop) -> None:
        """Play, and store the moves of both seats."""
        if self.opponents is not None:
            self.opponents.begin(self.slot)
        self._ended_before = self.games.last_ended
        super().collect(loop)

    def besides(self) -> Plain:
        """Return the moves and the outcome of the game that ended last, and the score against a past version."""
        ended = None if self.games.last_ended is self._ended_before else self.games.last_ended
        score = Score() if self.opponents is None else self.opponents.score
        return {
            "last_ended": None if ended is None else [ended.state.history(), ended.outcome, ended.played],
            "score": [score.wins, score.draws, score.losses],
        }

    def last_values(self) -> Tensor:
        """Return the values of the positions the next moves would be made in, as the first seat sees them."""
        return super().last_values() * torch.from_numpy(signs_of(self.games.seats))

    @classmethod
    def values_before(cls, experience: Experience, step: int) -> Tensor:
        """Return what ``last_values`` would have been had the rollout ended before this step."""
        return super().values_before(experience, step) * torch.from_numpy(signs_of(experience.arrays["seats"][step]))

    def _act(self, step: int, loop: RolloutLoop) -> np.ndarray[Any, Any]:
        arrays = self.experience.arrays
        arrays["seats"][step] = self.games.seats
        actions = super()._act(step, loop)
        if self.opponents is not None:
            self.opponents.move(self.games, actions, arrays["valid"][step], self.generator)
            arrays["actions"][step] = actions
        return actions

    def _observe(self, step: int) -> None:
        """Store the positions of the first step; the others are written where they are stored by the games."""
        if step == 0:
            super()._observe(step)
        if step + 1 < self.experience.horizon:
            arrays = self.experience.arrays
            self.games.show_next_in(arrays[OBSERVATIONS][step + 1], arrays["masks"][step + 1])

    def _store(self, step: int) -> None:
        super()._store(step)
        if self.opponents is not None:
            self.opponents.note(self.games.finished)

    def _bootstrap(self, step: int) -> None:
        super()._bootstrap(step)
        # What was valued is the position of who would have moved next; the bootstrap belongs to who has moved.
        is_other = self.games.final_seats != self.experience.arrays["seats"][step]
        bootstraps = self.experience.arrays["bootstraps"][step]
        np.negative(bootstraps, where=is_other, out=bootstraps)


class GameLearner(Learner):
    """Improves a policy on the moves of both seats."""

    def estimate(self, experience: Experience, last_values: Tensor) -> None:
        """Write advantages and returns, each as the seat that moved sees them."""
        arrays, steps = experience.arrays, experience.steps
        advantages = arrays["advantages"][:steps]
        estimate_signed_advantages(
            arrays["rewards"][:steps],
            arrays["values"][:steps],
            last_values.numpy(),
            experience.ends(),
            arrays["bootstraps"][:steps],
            signs_of(arrays["seats"][:steps]),
            gamma=self.gamma,
            gae_lambda=self.gae_lambda,
            out_TN=advantages,
        )
        np.add(advantages, arrays["values"][:steps], out=arrays["returns"][:steps])


class GameVtraceLearner(VtraceLearner):
    """Improves a policy on the moves of both seats, where they are a little older than its weights."""

    def _trace(self, experience: Experience, last_values: Tensor, log_ratios: Floats) -> Vtrace:
        arrays, steps = experience.arrays, experience.steps
        return signed_vtrace(
            log_ratios,
            arrays["rewards"][:steps],
            arrays["values"][:steps],
            last_values.numpy(),
            experience.ends(),
            arrays["bootstraps"][:steps],
            signs_of(arrays["seats"][:steps]),
            gamma=self.gamma,
            decay=self.gae_lambda,
        )


class SelfPlayWorkload(RLWorkload):
    """Plays and learns in turn, and tells how the games ended."""

    opponents: PastVersions | None = None
    """The past versions of which one plays in some of the games; by default there are none."""

    def run_epoch(self, loop: TrainingLoop) -> None:
        """Play, estimate advantages, learn, and leave the epoch's statistics in the state."""
        if self.opponents is not None:
            self.opponents.begin()
        super().run_epoch(loop)
        tally = cast("GameCollector", self.collector).games.tally
        loop.context.metrics |= {f"game/{name}": rate for name, rate in tally.rates().items()}
        loop.context.metrics["game/count"] = float(tally.games)
        if self.opponents is not None:
            loop.context.metrics |= self.opponents.metrics()
            self.opponents.end(self.learner.policy, loop.clocks.epochs + 1)

    def state_dict(self) -> dict[str, Plain]:
        """Return all that makes training go on with the same bits."""
        saved = super().state_dict()
        return saved if self.opponents is None else {**saved, "opponents": self.opponents.state_dict()}

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on from a saved state."""
        if self.opponents is not None and "opponents" not in saved:
            raise WorkloadError(
                "Past versions play in this run, and the saved state has none: it is of a run without them. Resume "
                "with opponents.share=0, or begin a new run."
            )
        super().load_state_dict(saved)
        if self.opponents is not None:
            self.opponents.load_state_dict(saved["opponents"])

    def perturb(self, seed: int) -> None:
        """Play and sample with other random numbers from here on; the games stay as they are."""
        super().perturb(seed)
        if self.opponents is not None:
            self.opponents.perturb(derive_seed(seed, "opponents"))
