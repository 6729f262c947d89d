"""What several learners of one run share after each rollout: clocks, episodes, and what observations are scaled by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hookloop.core import Clocks, Ranks
from hookloop.errors import ConfigError, WorkloadError
from hookloop.rl.envs import Envs, Episode
from hookloop.rl.envs.running import RunningStatistics
from hookloop.rl.experience import Experience

Plain = Any


class SharedRollout:
    """One rollout of all ranks: each collects alone, and they meet at its end.

    Without fillers every rank knows what the others step, so ``env_steps`` is right at every step. What only the
    others know, their episodes and fillers, is counted at the end of the rollout.
    """

    def __init__(self, ranks: Ranks, envs: Envs, clocks: Clocks) -> None:
        self._ranks = ranks
        self._clocks = clocks
        self._env_steps, self._episodes = clocks.env_steps, clocks.episodes
        self._scales = scales_of(envs)
        # In the first rollout what each has seen since its reset is news to the others, too.
        known = self._scales if clocks.epochs else [RunningStatistics(scale.mean.shape) for scale in self._scales]
        self._scales_before = [scale.state_dict() for scale in known]

    def meet(self, experience: Experience, finished: Sequence[Episode]) -> list[Episode]:
        """Count what the others have done, scale alike from here on, and return the episodes of all ranks."""
        clocks, steps = self._clocks, experience.steps
        told = self._ranks.gather(
            {
                "steps": steps,
                "env_steps": int(np.count_nonzero(experience.arrays["valid"][:steps])),
                "episodes": clocks.episodes - self._episodes,
                "finished": [[*episode[:3], dict(episode.infos)] for episode in finished],
                "scales": [
                    _plain(scale.since(before)) for scale, before in zip(self._scales, self._scales_before, strict=True)
                ],
            }
        )
        _require_same_steps([each["steps"] for each in told])
        clocks.env_steps = self._env_steps + sum(each["env_steps"] for each in told)
        clocks.episodes = self._episodes + sum(each["episodes"] for each in told)
        self._join_scales([each["scales"] for each in told])
        return [Episode(*episode) for each in told for episode in each["finished"]]

    def _join_scales(self, told: list[list[Mapping[str, Plain]]]) -> None:
        for number, (scale, before) in enumerate(zip(self._scales, self._scales_before, strict=True)):
            scale.load_state_dict(before)
            for of_rank in told:
                seen = RunningStatistics(scale.mean.shape)
                seen.load_state_dict(of_rank[number])
                scale.merge(seen)


def mean_over_ranks(ranks: Ranks, figures: Mapping[str, float]) -> dict[str, float]:
    """Return the mean of each figure over all ranks, which have the same ones."""
    told = ranks.gather(dict(figures))
    return {name: sum(each[name] for each in told) / len(told) for name in figures}


def share_of(num_envs: int, world_size: int) -> int:
    """Return how many environments each learner steps of all there are."""
    if num_envs % world_size:
        near = max(world_size, round(num_envs / world_size) * world_size)
        raise ConfigError(
            f"env.num_envs is {num_envs}, which cannot be shared evenly by {world_size} learners; the nearest number "
            f"that can is {near}."
        )
    return num_envs // world_size


def scales_of(envs: object) -> list[RunningStatistics]:
    """Return the running statistics of all wrappers that have some, from the outside in."""
    found: list[RunningStatistics] = []
    inside: Any = envs
    while inside is not None:
        statistics = getattr(inside, "statistics", {})
        found.extend([statistics] if isinstance(statistics, RunningStatistics) else statistics.values())
        inside = getattr(inside, "envs", None)
    return found


def _plain(statistics: RunningStatistics) -> dict[str, Plain]:
    return {name: np.asarray(value).tolist() for name, value in statistics.state_dict().items()}


def _require_same_steps(steps: list[int]) -> None:
    if len(set(steps)) > 1:
        raise WorkloadError(
            f"The ranks have collected {', '.join(map(str, steps))} steps, and cannot learn from them together; a loss "
            "that sets stop_rollout must do so on every rank at the same step."
        )
