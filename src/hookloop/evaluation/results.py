"""What an evaluation found: episodes, scores by category and name, and the policy and clocks they belong to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from hookloop.errors import NoEpisodesError

if TYPE_CHECKING:
    from hookloop.evaluation.statistics import Estimate

Key = tuple[str, str]
"""The category of a simulation, and its name."""


@dataclass(frozen=True, slots=True)
class EpisodeRecord:
    """Every step of one episode, in memory: arrays [T, ...] by name, and what else there is to say."""

    arrays: Mapping[str, Any]
    about: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PlayedEpisode:
    """One episode, played to its end."""

    number: int
    """Its place among the episodes of the simulation, from 0; the seed it began with is the first seed plus this."""
    return_: float
    length: int
    end: Literal["terminated", "truncated"]
    record: EpisodeRecord | None = None


@dataclass(frozen=True, slots=True)
class Played:
    """The episodes of one simulation, and how many were not played to their end."""

    episodes: tuple[PlayedEpisode, ...]
    failed: int = 0
    why: str = ""
    """Why some failed; empty if none did."""
    measures: Mapping[str, float] = field(default_factory=dict[str, float])
    """What else the player has to say in numbers, by name."""
    sample: Mapping[str, str] = field(default_factory=dict[str, str])
    """One episode in words, such as a prompt and its response."""


@dataclass(frozen=True, slots=True)
class LessonScore:
    """What a curriculum is told of one of its lessons; an episode that failed counts, and not as a success."""

    successes: int
    episodes: int
    mean_return: float


@dataclass(frozen=True, slots=True)
class Score:
    """What the episodes of one simulation say."""

    returns: tuple[float, ...]
    lengths: tuple[int, ...]
    failed: int
    why: str
    estimates: Mapping[str, Estimate]
    measures: Mapping[str, float] = field(default_factory=dict[str, float])
    sample: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def of(cls, played: Played, *, what: str, seed: int) -> Score:
        """Score the episodes of a simulation; ``what`` names it in the error if there are none."""
        from hookloop.evaluation.statistics import estimates  # with numpy, which a hook that only waits does not need

        if not played.episodes:
            reason = f": {played.why}" if played.why else ""
            raise NoEpisodesError(
                f"The evaluation of {what} finished none of its {played.failed} episodes{reason}. "
                "Give it more time (max_seconds), or look at the environment with 'hookloop check-env'."
            )
        returns = tuple(episode.return_ for episode in played.episodes)
        lengths = tuple(episode.length for episode in played.episodes)
        return cls(
            returns, lengths, played.failed, played.why, estimates(returns, seed=seed), played.measures, played.sample
        )

    @property
    def episodes(self) -> int:
        """How many were played to their end."""
        return len(self.returns)

    @property
    def mean(self) -> float:
        """The mean return."""
        return self.estimates["mean"].value

    @property
    def success_rate(self) -> float:
        """The share of episodes with a return above 0; one that failed was no success."""
        return sum(each > 0 for each in self.returns) / (self.episodes + self.failed)

    def statistics(self) -> dict[str, float]:
        """Return all numbers by name."""
        found = {f"return/{name}": estimate.value for name, estimate in self.estimates.items()}
        for name, estimate in self.estimates.items():
            found |= {f"return/{name}_low": estimate.low, f"return/{name}_high": estimate.high}
        return {
            **found,
            "success_rate": self.success_rate,
            "episode/length": math.fsum(self.lengths) / len(self.lengths),
            "episodes": float(self.episodes),
            "failed": float(self.failed),
            **self.measures,
        }

    def for_lesson(self, success_return: float = 0.0) -> LessonScore:
        """Return what a curriculum is told of a lesson in which a return above this is a success."""
        successes = sum(each > success_return for each in self.returns)
        return LessonScore(successes, self.episodes + self.failed, self.mean if math.isfinite(self.mean) else 0.0)


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """One evaluation: its scores, and which policy and which moment of training they belong to."""

    task: str
    scores: Mapping[Key, Score]
    clocks: Mapping[str, float]
    """The reading at which the policy was taken, however much later it was evaluated."""
    seed: int
    greedy: bool
    seconds: float
    checkpoint: str | None = None
    """The checkpoint that was evaluated; None for a policy in memory."""
    records: Sequence[tuple[Key, PlayedEpisode]] = ()
    replays: Mapping[str, str] = field(default_factory=dict[str, str])
    """Where the recorded episodes are, by name."""
    failures: Mapping[Key, str] = field(default_factory=dict[Key, str])
    """The simulations that have no score, and why."""

    @property
    def policy_version(self) -> int:
        """The version of the weights."""
        return int(self.clocks.get("policy_version", 0))

    @property
    def episodes(self) -> int:
        """How many were played to their end, in all simulations."""
        return sum(score.episodes for score in self.scores.values())

    @property
    def averages(self) -> dict[str, float]:
        """The numbers of all simulations that have a score, each with the same weight."""
        return _averages(list(self.scores.values()))

    def metrics(self) -> dict[str, float]:
        """Return all numbers under flat names: the averages, and with several simulations those of each one."""
        found = self.averages
        if len(self.scores) + len(self.failures) > 1:
            categories = dict.fromkeys(category for category, _ in self.scores)
            if len(categories) > 1:
                for category in categories:
                    of_it = [score for (each, _), score in self.scores.items() if each == category]
                    found |= {f"{category}/{name}": value for name, value in _averages(of_it).items()}
            for (_, name), score in self.scores.items():
                found |= {f"{name}/{key}": value for key, value in score.statistics().items()}
        return {**found, **{f"{name}/episodes": 0.0 for _, name in self.failures}}

    def rows(self) -> Iterator[tuple[str, Key, Score]]:
        """Yield each score with the name under which it is kept."""
        is_alone = len(self.scores) + len(self.failures) == 1
        for key, score in self.scores.items():
            yield self.task if is_alone else f"{self.task}/{key[1]}", key, score


def _averages(scores: Sequence[Score]) -> dict[str, float]:
    if len(scores) == 1:
        return scores[0].statistics()
    means = {
        name: math.fsum(score.estimates[name].value for score in scores) / len(scores) for name in scores[0].estimates
    }
    shared = [name for name in scores[0].measures if all(name in score.measures for score in scores)]
    return {
        **{f"return/{name}": value for name, value in means.items()},
        **{name: math.fsum(score.measures[name] for score in scores) / len(scores) for name in shared},
        "success_rate": math.fsum(score.success_rate for score in scores) / len(scores),
        "episodes": float(sum(score.episodes for score in scores)),
        "failed": float(sum(score.failed for score in scores)),
    }
