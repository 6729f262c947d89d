"""The statistics by which observations and rewards are scaled, where several play at once.

A rollout scales by what all have counted before it began, and by what it counts itself. What it has counted comes
home with it and is merged, slot by slot, before the next rollouts begin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hookloop.rl.envs import Envs, NormalizedObservations, NormalizedRewards, WrappedEnvs
from hookloop.rl.envs.running import RunningStatistics, SharedStatistics

Plain = Any

RETURNS = "returns"


def keep_apart(envs: Envs) -> dict[str, SharedStatistics]:
    """Let the wrappers of some environments count apart what they add, and return the counters by name."""
    found: dict[str, SharedStatistics] = {}
    for wrapper in _wrappers(envs):
        if isinstance(wrapper, NormalizedObservations):
            apart = {key: SharedStatistics(old.mean.shape) for key, old in wrapper.statistics.items()}
            wrapper.statistics = apart
            found |= {f"obs/{key}": statistics for key, statistics in apart.items()}
        elif isinstance(wrapper, NormalizedRewards):
            wrapper.statistics = found[RETURNS] = SharedStatistics()
    return found


def statistics_of(envs: Envs) -> dict[str, RunningStatistics]:
    """Return the statistics of all wrappers, by the names that ``keep_apart`` gives them."""
    found: dict[str, RunningStatistics] = {}
    for wrapper in _wrappers(envs):
        if isinstance(wrapper, NormalizedObservations):
            found |= {f"obs/{key}": statistics for key, statistics in wrapper.statistics.items()}
        elif isinstance(wrapper, NormalizedRewards):
            found[RETURNS] = wrapper.statistics
    return found


def count_nothing(envs: Envs) -> None:
    """Let the wrappers of environments that are played elsewhere count only what comes home."""
    for wrapper in _wrappers(envs):
        if isinstance(wrapper, NormalizedObservations | NormalizedRewards):
            wrapper.freeze()


def merge_added(statistics: Mapping[str, RunningStatistics], added: Mapping[str, Plain]) -> None:
    """Count in what one rollout has added."""
    for name, all_counted in statistics.items():
        counted = RunningStatistics(all_counted.mean.shape)
        counted.load_state_dict(added[name])
        all_counted.merge(counted)


def refresh_scaling(envs: Envs) -> None:
    """Show the observations to act on next as the statistics now are."""
    for wrapper in _wrappers(envs):
        if isinstance(wrapper, NormalizedObservations):
            wrapper.scale_again()


def _wrappers(envs: Envs) -> Iterator[WrappedEnvs]:
    while isinstance(envs, WrappedEnvs):
        yield envs
        envs = envs.envs
