"""Collection: every slot has a lesson, and what it gives is a pure task for a pool of workers."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from hookloop.core import TrainingLoop, derive_seed
from hookloop.pools import Task, TaskKey, WorkerPool, gather
from hookloop.sequences.experience import Sequences

Plain = Any

COMPLETIONS_IN_MEAN = 1000


@dataclass(slots=True)
class LessonSlots:
    """Which lesson each slot has, and the rewards that were found since anybody asked."""

    slots: int
    lessons: list[str] = field(default_factory=list[str])
    _found: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def __post_init__(self) -> None:
        self.lessons = [""] * self.slots

    def assign(self, lessons: Sequence[str]) -> list[Any]:
        """Give each slot its lesson; nothing is under way in a slot, so nothing has to move with it."""
        self.lessons = list(lessons)
        return []

    def note(self, lesson: str, rewards: list[float]) -> None:
        """Take in what completions of a lesson were worth."""
        self._found.setdefault(lesson, []).extend(rewards)

    def drain_played(self) -> dict[str, list[float]]:
        """Hand over the rewards by lesson."""
        found, self._found = self._found, {}
        return found


class SequenceCollector:
    """Asks a pool for the rollouts of all slots, each a function of the run's seed, the rollout and the slot.

    Args:
        slots: The lessons of the slots.
        seed: What all prompts and draws follow from.
        prompts: Of each slot in a rollout.
        completions: Of each prompt.
        temperature: Of the draws.
    """

    def __init__(self, slots: LessonSlots, *, seed: int, prompts: int, completions: int, temperature: float) -> None:
        self.slots = slots
        self.temperature = temperature
        self.recent: deque[float] = deque(maxlen=COMPLETIONS_IN_MEAN)
        self._seed = derive_seed(seed, "rollouts")
        self._prompts, self._completions = prompts, completions
        self._rollouts = 0
        self._published = 0

    def collect(
        self, loop: TrainingLoop, pool: WorkerPool, weights: Mapping[str, Tensor], *, with_examples: bool
    ) -> Sequences:
        """Return what all slots have given, telling the loop of each; leave the statistics in the state."""
        with loop.rollout():
            # A count of its own, because a run that was rolled back publishes older weights under a newer number.
            self._published += 1
            pool.publish(self._published, weights)
            results = [each.value for each in gather(pool, self._tasks(with_examples=with_examples))]
            self._rollouts += 1
            rewards: list[float] = []
            lengths: list[float] = []
            for lesson, result in zip(self.slots.lessons, results, strict=True):
                found = result["rewards"].flatten().tolist()
                rewards += found
                lengths += result["lengths"].tolist()
                self.slots.note(lesson, found)
                loop.step(env_steps=int(result["lengths"].sum()), episodes=len(found))
            self.recent.extend(rewards)
            loop.state.rollout_stats = {"return": rewards, "length": lengths}
        return Sequences.joined(results)

    def perturb(self, seed: int) -> None:
        """Draw with other random numbers from here on."""
        self._seed = derive_seed(seed, "rollouts")

    def state_dict(self) -> dict[str, Plain]:
        """Return plain data from which the same rollouts follow."""
        return {
            "seed": self._seed,
            "rollouts": self._rollouts,
            "lessons": list(self.slots.lessons),
            "recent": list(self.recent),
        }

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on from a saved state."""
        self._seed, self._rollouts = saved["seed"], saved["rollouts"]
        self.slots.assign(saved["lessons"])
        self.recent = deque(saved["recent"], maxlen=COMPLETIONS_IN_MEAN)

    def _tasks(self, *, with_examples: bool) -> list[Task]:
        fixed = {
            "prompts": self._prompts,
            "completions": self._completions,
            "temperature": self.temperature,
            "examples": with_examples,
        }
        return [
            Task(
                TaskKey(slot, self._published),
                {"lesson": lesson, "seed": derive_seed(self._seed, self._rollouts, slot), **fixed},
                self._published,
            )
            for slot, lesson in enumerate(self.slots.lessons)
        ]
