"""What is known of one lesson from one source: training, or evaluation."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Plain = Any


@dataclass(frozen=True, slots=True)
class EvaluationStats:
    """How one lesson went in one full evaluation."""

    successes: int
    episodes: int
    mean_return: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.successes <= self.episodes:
            raise ValueError(
                f"Of {self.episodes} episodes {self.successes} succeeded; there cannot be more, nor fewer than none."
            )


class LessonStats:
    """Success as an exponential average, its recent course, and counts.

    The average follows quickly and is never at rest, so a trend cannot be read from it. The course is made of
    means over equally many episodes each, one after the other, which are independent of each other.

    Args:
        alpha: The weight of the newest episode in the average.
        prior: The success before the first one.
        window: How many points of the course are kept.
        point_episodes: How many episodes make one point.
    """

    __slots__ = ("_point_episodes", "_point_successes", "alpha", "episodes", "history", "mean_return", "success")

    def __init__(self, *, alpha: float, prior: float, window: int, point_episodes: int) -> None:
        self.alpha = alpha
        self.success = prior
        self.mean_return = 0.0
        self.episodes = 0
        self.history: deque[float] = deque(maxlen=window)
        self._point_episodes = point_episodes
        self._point_successes = 0

    def observe(self, *, succeeded: bool, return_: float) -> None:
        """Take in one episode."""
        self.success += self.alpha * ((1.0 if succeeded else 0.0) - self.success)
        before = return_ if not self.episodes else self.mean_return
        self.mean_return = before + self.alpha * (return_ - before)
        self.episodes += 1
        self._point_successes += succeeded
        if self.episodes % self._point_episodes == 0:
            self.history.append(self._point_successes / self._point_episodes)
            self._point_successes = 0

    def replace(self, found: EvaluationStats) -> None:
        """Take in a whole evaluation, which is large enough to stand for itself and to be a point of its own."""
        self.success = found.successes / found.episodes
        self.mean_return = found.mean_return
        self.episodes += found.episodes
        self.history.append(self.success)

    def state_dict(self) -> dict[str, Plain]:
        """Return plain data, exact to the last bit."""
        return {
            "success": self.success,
            "mean_return": self.mean_return,
            "episodes": self.episodes,
            "point_successes": self._point_successes,
            "history": list(self.history),
        }

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on from saved statistics."""
        self.success, self.mean_return = float(saved["success"]), float(saved["mean_return"])
        self.episodes, self._point_successes = int(saved["episodes"]), int(saved["point_successes"])
        self.history.clear()
        self.history.extend(float(value) for value in saved["history"])
