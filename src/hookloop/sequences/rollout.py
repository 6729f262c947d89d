"""A rollout of one slot as a pure task: prompts from a seed, groups of completions, what each is worth.

Legend: ``P`` prompts, ``R`` rows (all completions of the first prompt, then of the second ...), ``T`` positions.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from hookloop.core import derive_seed
from hookloop.errors import ConfigError
from hookloop.pools import MakePerformer
from hookloop.sequences.lessons import SequenceLesson
from hookloop.sequences.sampling import Completions, Drawing, complete, padded
from hookloop.sequences.vocabulary import END, Vocabulary
from hookloop.supervised.config import GPTConfig
from hookloop.supervised.models.gpt import GPT

Plain = Any


def build_model(config: GPTConfig, vocabulary: Vocabulary, lessons: Mapping[str, SequenceLesson]) -> GPT:
    """Return a transformer that can read every lesson's prompts with their responses."""
    longest = max(each.longest_prompt + each.longest_response + 1 for each in lessons.values())
    return GPT(len(vocabulary), longest, **config.model_dump(exclude={"kind"}))


def vocabulary_of(lessons: Mapping[str, SequenceLesson]) -> Vocabulary:
    """Return the characters that the lessons use, in the order of their codes."""
    return Vocabulary("".join(sorted(set("".join(each.symbols for each in lessons.values())))))


def prompts_of(lesson: SequenceLesson, seed: int, count: int) -> list[str]:
    """Return prompts that follow from a seed alone."""
    prompts = [lesson.prompt(random.Random(derive_seed(seed, "prompt", number))) for number in range(count)]
    for prompt in prompts:
        if not 1 <= len(prompt) <= lesson.longest_prompt:
            raise ConfigError(
                f"{type(lesson).__name__} made the prompt {prompt!r:.60} of {len(prompt)} characters; it says that its "
                f"prompts have 1 to {lesson.longest_prompt} (longest_prompt)."
            )
    return prompts


def reward_of(lesson: SequenceLesson, prompt: str, response: str) -> float:
    """Return what a response is worth; a number that is not finite is refused."""
    reward = float(lesson.reward(prompt, response))
    if not math.isfinite(reward):
        raise ConfigError(
            f"{type(lesson).__name__} gave the response {response!r:.60} to {prompt!r:.60} the reward {reward}; "
            "a reward must be a finite number."
        )
    return reward


def most_drawn(lesson: SequenceLesson) -> int:
    """Return how many symbols a response to this lesson may have, its end among them."""
    return lesson.longest_response + 1


class RolloutPerformer:
    """Computes the rollouts of slots with a model of its own; see ``hookloop.pools.Performer``.

    A payload is ``lesson``, ``seed``, ``prompts``, ``completions`` (of each), ``temperature`` and ``examples`` (whether
    right answers are wanted, too). The result has ``tokens`` and ``log_probs`` [R, T], ``prompt_lengths`` and
    ``lengths`` [R], ``rewards`` [P, completions], and with examples ``example_tokens`` [P, T] and ``example_lengths``.
    """

    def __init__(
        self, model: GPT, vocabulary: Vocabulary, lessons: Mapping[str, SequenceLesson], *, threads: int | None = None
    ) -> None:
        if threads is not None:  # sums of several threads have other bits than those of one
            torch.set_num_threads(threads)
        self.model = model.eval()
        self.vocabulary = vocabulary
        self.lessons = lessons

    def take_weights(self, version: int, tensors: Mapping[str, Tensor]) -> None:
        """Compute with a copy of these weights from now on."""
        self.model.load_state_dict(dict(tensors))

    def perform(self, payload: Plain) -> dict[str, Tensor]:
        """Return the rollout of one slot."""
        lesson, seed, number = self.lessons[payload["lesson"]], payload["seed"], payload["completions"]
        prompts = prompts_of(lesson, seed, payload["prompts"])
        encoded = [self.vocabulary.encode(prompt) for prompt in prompts]
        found = complete(
            self.model,
            [prompt for prompt in encoded for _ in range(number)],
            most_drawn(lesson),
            generator=torch.Generator().manual_seed(derive_seed(seed, "draw")),
            drawing=Drawing(payload["temperature"]),
        )
        texts = responses(self.vocabulary, found)
        rewards = [reward_of(lesson, prompts[row // number], text) for row, text in enumerate(texts)]
        result = {
            "tokens": found.tokens,
            "log_probs": found.log_probs,
            "prompt_lengths": found.prompt_lengths,
            "lengths": found.lengths,
            "rewards": torch.tensor(rewards, dtype=torch.float32).view(len(prompts), number),
        }
        return {**result, **self._examples(lesson, prompts, encoded)} if payload["examples"] else result

    def close(self) -> None:
        """There is nothing to release."""

    def _examples(
        self, lesson: SequenceLesson, prompts: Sequence[str], encoded: Sequence[Sequence[int]]
    ) -> dict[str, Tensor]:
        answer: Any = getattr(lesson, "answer", None)
        if answer is None:
            return {"example_tokens": padded(encoded, 1 + max(map(len, encoded))),
                    "example_lengths": torch.zeros(len(prompts), dtype=torch.int64)}  # fmt: skip
        answers = [[*self.vocabulary.encode(answer(prompt)), END] for prompt in prompts]
        rows = [[*prompt, *right] for prompt, right in zip(encoded, answers, strict=True)]
        return {
            "example_tokens": padded(rows, max(map(len, rows))),
            "example_lengths": torch.tensor([len(right) for right in answers]),
        }


def make_performer(
    config: GPTConfig, lessons: Mapping[str, SequenceLesson], threads: int | None = None
) -> RolloutPerformer:
    """Return a performer with a model of these settings; its weights come later."""
    vocabulary = vocabulary_of(lessons)
    with torch.random.fork_rng(devices=[]):  # the first weights are replaced before they are used
        model = build_model(config, vocabulary, lessons)
    return RolloutPerformer(model, vocabulary, lessons, threads=threads)


def performer_maker(
    config: GPTConfig, lessons: Mapping[str, SequenceLesson], threads: int | None = None
) -> MakePerformer:
    """Return what makes performers in the processes of a pool."""
    return partial(make_performer, config, dict(lessons), threads)


def responses(vocabulary: Vocabulary, found: Completions) -> list[str]:
    """Return what was drawn after the prompts, as text."""
    begins, lengths = found.prompt_lengths.tolist(), found.lengths.tolist()
    rows = zip(found.tokens.tolist(), begins, lengths, strict=True)
    return [vocabulary.decode(row[begin : begin + length]) for row, begin, length in rows]
