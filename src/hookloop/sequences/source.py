"""Responses to prompts as rollouts, for a rollout worker."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from hookloop.curriculum.config import Lesson
from hookloop.errors import ConfigError, UnknownNameError
from hookloop.evaluation.results import Played
from hookloop.evaluation.tasks import Wanted
from hookloop.sequences.lessons import make_lesson
from hookloop.sequences.player import SequencePlayer
from hookloop.sequences.rollout import RolloutPerformer, build_model, vocabulary_of
from hookloop.sequences.source_config import SequenceSourceConfig
from hookloop.supervised.models.gpt import GPT
from hookloop.worker.errors import WorkerError
from hookloop.worker.rollouts import Rollout

if TYPE_CHECKING:
    from torch import Tensor


class SequenceSource:
    """A transformer that answers the prompts of lessons, each prompt several times.

    Args:
        config: The settings.
        lessons: By name; there is nothing to answer without.
        seed: The weights it begins with follow from it.
    """

    def __init__(self, config: SequenceSourceConfig, lessons: Mapping[str, Lesson], *, seed: int = 0) -> None:
        if not lessons:
            raise ConfigError("A source of sequences needs the lessons of a curriculum; give the worker one.")
        self.config = config
        self.lessons = {name: make_lesson(each.env.id or name, each.env.kwargs) for name, each in lessons.items()}
        self.vocabulary = vocabulary_of(self.lessons)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = build_model(config.model, self.vocabulary, self.lessons)
        self._performer = RolloutPerformer(model, self.vocabulary, self.lessons)
        self._version = 0

    @property
    def model(self) -> GPT:
        """What answers."""
        return self._performer.model

    def take_weights(self, version: int, tensors: Mapping[str, Tensor]) -> None:
        """Answer with a copy of these weights from now on."""
        try:
            self._performer.take_weights(version, tensors)
        except RuntimeError as error:
            raise WorkerError(
                f"The weights of version {version} do not fit the worker's model: {' '.join(str(error).split())} "
                "Give the worker the model settings and the lessons of the trainer."
            ) from error
        self._version = version

    def generate(self, lesson: str | None, count: int, *, seed: int) -> list[Rollout]:
        """Return ``count`` responses, those to one prompt with one ``group``."""
        size = self.config.group_size
        found = self._performer.perform(
            {
                "lesson": self._require(lesson),
                "seed": seed,
                "prompts": math.ceil(count / size),
                "completions": size,
                "temperature": self.config.temperature,
                "examples": False,
            }
        )
        return [self._rollout(lesson, found, row, f"{lesson}/{seed}/{row // size}") for row in range(count)]

    def play(self, lesson: str | None, wanted: Wanted) -> Played:
        """Answer prompts for an evaluation."""
        player = SequencePlayer(self.model, self.vocabulary, pass_k=self.config.pass_k)
        return player.play(self.lessons[self._require(lesson)], wanted)

    def close(self) -> None:
        """There is nothing to release."""

    def _rollout(self, lesson: str | None, found: Mapping[str, Any], row: int, group: str) -> Rollout:
        begin, length = int(found["prompt_lengths"][row]), int(found["lengths"][row])
        tokens, log_probs = found["tokens"][row].numpy(), found["log_probs"][row].numpy()
        prompt, response = tokens[:begin], tokens[begin : begin + length]
        return Rollout(
            lesson,
            float(found["rewards"].flatten()[row]),
            length,
            self._version,
            {"prompt_tokens": prompt, "response_tokens": response, "log_probs": log_probs[begin : begin + length]},
            group,
            {"prompt": self.vocabulary.decode(prompt.tolist()), "response": self.vocabulary.decode(response.tolist())},
        )

    def _require(self, lesson: str | None) -> str:
        if lesson is None or lesson not in self.lessons:
            raise UnknownNameError("lesson", str(lesson), self.lessons, where="in this source")
        return lesson
