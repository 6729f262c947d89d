"""Where rollouts come from: the face of everything that can act with weights, whatever it acts in.

A source is a pure function of what it is given: the same lesson, count, seed and weights give the same rollouts,
whoever asks and whatever was asked before. So a worker that is killed and started again, or another one in its place,
generates the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from hookloop.config.settings import Settings

if TYPE_CHECKING:
    from torch import Tensor

    from hookloop.curriculum import Lesson
    from hookloop.evaluation.results import Played
    from hookloop.evaluation.tasks import Wanted
    from hookloop.worker.rollouts import Rollout


class RolloutSource(Protocol):
    """Acts with the weights it was given last.

    A lesson is its name; a source was made with the lessons and knows what each name stands for. None is what the
    source does where there is no curriculum.
    """

    def take_weights(self, version: int, tensors: Mapping[str, Tensor]) -> None:
        """Act with these weights from now on; copy what is kept, the memory may be used again."""
        ...

    def generate(self, lesson: str | None, count: int, *, seed: int) -> Sequence[Rollout]:
        """Return ``count`` rollouts of a lesson, or fewer if some came to nothing; actions are drawn, as in training.

        Every random number follows from ``seed``, and ``weight_version`` is the version that was taken last. A source
        that answers each prompt several times returns ``count`` answers in all, those of a prompt with one ``group``.
        """
        ...

    def play(self, lesson: str | None, wanted: Wanted) -> Played:
        """Play a lesson for an evaluation: ``wanted.episodes`` times, greedily unless it says otherwise.

        An episode is one attempt at the lesson: its ``return_`` is its reward, its ``length`` its steps or tokens.
        """
        ...

    def close(self) -> None:
        """Release what is held; a second call does nothing."""
        ...


class SourceConfig(Settings):
    """Settings that a source is made from; each kind of source has a subclass of its own."""

    def build(self, lessons: Mapping[str, Lesson], *, seed: int) -> RolloutSource:
        """Make the source.

        Args:
            lessons: By name; empty where there is no curriculum.
            seed: What the weights it begins with follow from.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say how to build its source.")
