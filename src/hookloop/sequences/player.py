"""A model that answers prompts for an evaluation, frozen at a moment of training."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from typing import Any

import torch

from hookloop.core import derive_seed
from hookloop.errors import ConfigError
from hookloop.evaluation.results import Played, PlayedEpisode
from hookloop.evaluation.tasks import Wanted
from hookloop.sequences.lessons import SequenceLesson, make_lesson
from hookloop.sequences.rollout import most_drawn, prompts_of, responses, reward_of
from hookloop.sequences.sampling import Completions, Drawing, complete
from hookloop.sequences.vocabulary import END, Vocabulary
from hookloop.supervised.models.gpt import GPT

MOST_ROWS = 512


class SequencePlayer:
    """Answers the prompts of lessons with a copy of a model; training can go on, and nothing of it is touched.

    An episode is one response: its return is the reward, its length the symbols drawn. Besides, each prompt is answered
    ``pass_k`` times by chance: ``pass@1`` is the share of those that succeed, ``pass@k`` the share of prompts for which
    any does.

    Args:
        model: What answers.
        vocabulary: Its symbols.
        pass_k: The draws per prompt.
    """

    def __init__(self, model: GPT, vocabulary: Vocabulary, *, pass_k: int = 4) -> None:
        self.model = copy.deepcopy(model).eval().requires_grad_(False)
        self.vocabulary = vocabulary
        self.pass_k = pass_k

    def play(self, env: Any, wanted: Wanted) -> Played:
        """Answer as many prompts as wanted; ``env`` is a lesson, or what it is registered as."""
        lesson = _lesson(env)
        prompts = prompts_of(lesson, wanted.seed, wanted.episodes)
        deadline = None if wanted.max_seconds is None else time.monotonic() + wanted.max_seconds
        episodes: list[PlayedEpisode] = []
        drawn: list[list[float]] = []
        sample: dict[str, str] = {}
        per_batch = max(1, MOST_ROWS // self.pass_k)
        for first in range(0, len(prompts), per_batch):
            if deadline is not None and time.monotonic() > deadline:
                break
            batch, seed = prompts[first : first + per_batch], derive_seed(wanted.seed, "answer", first)
            greedy = Drawing(0.0 if wanted.greedy else 1.0)
            found, texts = self.answer(batch, most_drawn(lesson), seed, drawing=greedy)
            episodes += _episodes(lesson, batch, first, found, texts)
            sample = sample or {"prompt": batch[0], "response": texts[0]}
            often = [prompt for prompt in batch for _ in range(self.pass_k)]
            _, texts = self.answer(often, most_drawn(lesson), derive_seed(seed, "pass"))
            rewards = [reward_of(lesson, prompt, text) for prompt, text in zip(often, texts, strict=True)]
            drawn += [rewards[k : k + self.pass_k] for k in range(0, len(rewards), self.pass_k)]
        failed = wanted.episodes - len(episodes)
        why = f"not answered within {wanted.max_seconds:g} seconds" if failed else ""
        return Played(tuple(episodes), failed, why, self._measures(episodes, drawn) if episodes else {}, sample)

    def answer(
        self, prompts: Sequence[str], most: int, seed: int, *, drawing: Drawing | None = None
    ) -> tuple[Completions, list[str]]:
        """Answer prompts with at most so many symbols; the same seed gives the same responses."""
        found = complete(
            self.model,
            [self.vocabulary.encode(prompt) for prompt in prompts],
            most,
            generator=torch.Generator().manual_seed(seed),
            drawing=drawing,
        )
        return found, responses(self.vocabulary, found)

    def _measures(self, episodes: Sequence[PlayedEpisode], drawn: Sequence[Sequence[float]]) -> dict[str, float]:
        succeeded = [[reward > 0 for reward in rewards] for rewards in drawn]
        return {
            "avg_reward": sum(each.return_ for each in episodes) / len(episodes),
            "total_count": float(len(episodes)),
            "pass@1": sum(map(sum, succeeded)) / (self.pass_k * len(drawn)),
            f"pass@{self.pass_k}": sum(map(any, succeeded)) / len(drawn),
        }


def _lesson(env: Any) -> SequenceLesson:
    """Return the lesson that is meant: by its name, as a curriculum says it, or itself."""
    if isinstance(env, str):
        return make_lesson(env)
    if hasattr(env, "prompt") and hasattr(env, "reward"):
        return env
    if getattr(env, "id", None) is not None:
        return make_lesson(env.id, env.kwargs)
    raise ConfigError(f"An evaluation of sequences names a lesson, got {env!r:.100}; there is none without a name.")


def _episodes(
    lesson: SequenceLesson, prompts: Sequence[str], first: int, found: Completions, texts: Sequence[str]
) -> list[PlayedEpisode]:
    has_end = (found.tokens == END).any(dim=1).tolist()
    rows = zip(prompts, texts, found.lengths.tolist(), has_end, strict=True)
    return [
        PlayedEpisode(first + k, reward_of(lesson, prompt, text), length, "terminated" if is_ended else "truncated")
        for k, (prompt, text, length, is_ended) in enumerate(rows)
    ]
