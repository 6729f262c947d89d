"""Collection and learning from games: as in reinforcement learning, with a sign for the seat."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import numpy as np
import torch
from torch import Tensor

from hookloop.rl.collector import Collector
from hookloop.rl.experience import Experience, ExperienceSpec
from hookloop.rl.learner import Learner
from hookloop.rl.specs import ArraySpec
from hookloop.rl.workload import RLWorkload
from hookloop.selfplay.advantages import estimate_signed_advantages, signs_of
from hookloop.selfplay.games import GameEnvs


class GameCollector(Collector):
    """Fills the experience with the moves of both seats, and stores who made them."""

    columns: ClassVar[ExperienceSpec] = {"seats": ArraySpec((), "int8")}

    @property
    def games(self) -> GameEnvs:
        """The games that are played."""
        return cast("GameEnvs", self.envs)

    def last_values(self) -> Tensor:
        """Return the values of the positions the next moves would be made in, as the first seat sees them."""
        return super().last_values() * torch.from_numpy(signs_of(self.games.seats))

    @classmethod
    def values_before(cls, experience: Experience, step: int) -> Tensor:
        """Return what ``last_values`` would have been had the rollout ended before this step."""
        return super().values_before(experience, step) * torch.from_numpy(signs_of(experience.arrays["seats"][step]))

    def _act(self, step: int, loop: Any) -> np.ndarray[Any, Any]:
        self.experience.arrays["seats"][step] = self.games.seats
        return super()._act(step, loop)

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


class SelfPlayWorkload(RLWorkload):
    """Plays and learns in turn, and tells how the games ended."""

    def run_epoch(self, loop: Any) -> None:
        """Play, estimate advantages, learn, and leave the epoch's statistics in the state."""
        super().run_epoch(loop)
        tally = cast("GameCollector", self.collector).games.tally
        loop.context.metrics |= {f"game/{name}": rate for name, rate in tally.rates().items()}
        loop.context.metrics["game/count"] = float(tally.games)
