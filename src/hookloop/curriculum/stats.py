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

    Args:
        alpha: The weight of the newest observation.
        prior: The success before the first one.
        window: How much of the course is kept, one point per update.
    """

    __slots__ = ("alpha", "episodes", "history", "mean_return", "success", "updates")

    def __init__(self, *, alpha: float, prior: float, window: int) -> None:
        self.alpha = alpha
        self.success = prior
        self.mean_return = 0.0
        self.episodes = 0
        self.updates = 0
        self.history: deque[float] = deque(maxlen=window)

    def observe(self, *, succeeded: bool, return_: float) -> None:
        """Take in one episode."""
        self.success += self.alpha * ((1.0 if succeeded else 0.0) - self.success)
        self.mean_return = (
            return_ if not self.episodes else self.mean_return + self.alpha * (return_ - self.mean_return)
        )
        self.episodes += 1

    def replace(self, found: EvaluationStats) -> None:
        """Take in a whole evaluation, which is large enough to stand for itself."""
        self.success = found.successes / found.episodes
        self.mean_return = found.mean_return
        self.episodes += found.episodes

    def end_update(self) -> None:
        """Note where the success stands, as the next point of its course."""
        self.updates += 1
        self.history.append(self.success)

    def state_dict(self) -> dict[str, Plain]:
        """Return plain data, exact to the last bit."""
        return {
            "success": self.success,
            "mean_return": self.mean_return,
            "episodes": self.episodes,
            "updates": self.updates,
            "history": list(self.history),
        }

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on from saved statistics."""
        self.success, self.mean_return = float(saved["success"]), float(saved["mean_return"])
        self.episodes, self.updates = int(saved["episodes"]), int(saved["updates"])
        self.history.clear()
        self.history.extend(float(value) for value in saved["history"])
