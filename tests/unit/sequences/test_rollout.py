"""A rollout is a pure function of its payload and the weights; an evaluation answers the same prompts every time."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from hookloop.errors import ConfigError
from hookloop.evaluation.tasks import Wanted
from hookloop.sequences.experience import Sequences
from hookloop.sequences.lessons import make_lesson
from hookloop.sequences.player import SequencePlayer
from hookloop.sequences.rollout import RolloutPerformer, build_model, make_performer, prompts_of, vocabulary_of
from hookloop.sequences.vocabulary import END
from hookloop.supervised.config import GPTConfig
from tests.unit.sequences.models import small_model

LESSONS = {"copy": make_lesson("copy", {"longest": 3, "alphabet": "ab"}), "sums": make_lesson("arithmetic")}
NETWORK = GPTConfig(layers=1, heads=2, width=16)
PAYLOAD: dict[str, Any] = {
    "lesson": "copy", "seed": 5, "prompts": 3, "completions": 4, "temperature": 1.0, "examples": True,
}  # fmt: skip


def performer(seed: int = 0) -> RolloutPerformer:
    made = make_performer(NETWORK, LESSONS)
    weights = {name: torch.from_numpy(value) for name, value in weights_from(seed).items()}
    made.take_weights(1, weights)
    return made


def weights_from(seed: int) -> dict[str, Any]:
    vocabulary = vocabulary_of(LESSONS)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return {n: t.numpy().copy() for n, t in build_model(NETWORK, vocabulary, LESSONS).state_dict().items()}


def test_the_same_task_gives_the_same_bits_whatever_was_computed_before() -> None:
    once, other = performer(), performer()
    other.perform({**PAYLOAD, "lesson": "sums", "seed": 77})

    first, second = once.perform(PAYLOAD), other.perform(PAYLOAD)

    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_another_seed_or_other_weights_give_something_else() -> None:
    tokens = performer().perform(PAYLOAD)["tokens"]

    for found in (performer().perform({**PAYLOAD, "seed": 6}), performer(seed=1).perform(PAYLOAD)):
        assert found["tokens"].shape != tokens.shape or not torch.equal(found["tokens"], tokens)


def test_making_a_performer_leaves_the_global_stream_alone() -> None:
    before = torch.get_rng_state()

    performer()

    assert torch.equal(torch.get_rng_state(), before)


def test_completions_of_a_prompt_stand_together_with_their_rewards() -> None:
    worker = performer()
    found = worker.perform(PAYLOAD)
    prompts = prompts_of(LESSONS["copy"], 5, 3)

    assert found["rewards"].shape == (3, 4)
    for row in range(12):
        begin, length = int(found["prompt_lengths"][row]), int(found["lengths"][row])
        tokens = found["tokens"][row].tolist()
        assert worker.vocabulary.decode(tokens[:begin]) == prompts[row // 4]
        response = worker.vocabulary.decode(tokens[begin : begin + length])
        assert LESSONS["copy"].reward(prompts[row // 4], response) == found["rewards"][row // 4, row % 4]


def test_examples_are_prompts_with_their_answers_and_an_end() -> None:
    worker = performer()
    found = worker.perform(PAYLOAD)

    for tokens, length, prompt in zip(
        found["example_tokens"].tolist(), found["example_lengths"].tolist(), prompts_of(LESSONS["copy"], 5, 3),
        strict=True,
    ):  # fmt: skip
        assert worker.vocabulary.decode(tokens) == prompt + prompt[:-1]
        assert tokens[len(prompt) + length - 1] == END
    assert "example_tokens" not in worker.perform({**PAYLOAD, "examples": False})


def test_slots_of_different_lessons_are_joined_with_masks_over_what_was_drawn() -> None:
    worker = performer()
    results = [worker.perform(PAYLOAD), worker.perform({**PAYLOAD, "lesson": "sums", "prompts": 2})]

    joined = Sequences.joined(results)

    rows = torch.cat([each["lengths"] for each in results])
    assert joined.rewards.shape == (5, 4)
    assert torch.equal(joined.mask.sum(dim=1), rows.float())
    assert ((joined.log_probs == 0) | (joined.mask == 1)).all()
    assert torch.equal(
        joined.tokens[0, : results[0]["tokens"].shape[1]], results[0]["tokens"][0, : joined.tokens.shape[1]]
    )
    assert joined.example_mask is not None
    assert torch.equal(joined.example_mask.sum(dim=1), torch.cat([each["example_lengths"] for each in results]).float())


class Knowing:
    """A lesson that half of all responses of a model solve, as a test can arrange it."""

    symbols, longest_prompt, longest_response = "abcde", 2, 3

    def prompt(self, rng: Any) -> str:
        return rng.choice("ab") + "c"

    def reward(self, prompt: str, response: str) -> float:
        return float(response.startswith(prompt[0]))


def test_an_evaluation_measures_what_was_answered() -> None:
    lesson = Knowing()
    vocabulary = vocabulary_of({"knowing": lesson})
    player = SequencePlayer(small_model(len(vocabulary), spread=2.0), vocabulary, pass_k=8)

    found, again = (player.play(lesson, Wanted(episodes=40, seed=9)) for _ in range(2))
    drawn = player.play(lesson, Wanted(episodes=40, seed=9, greedy=False))

    assert found == again
    assert drawn != found
    assert [each.number for each in found.episodes] == list(range(40))
    assert found.measures["total_count"] == 40
    assert found.measures["avg_reward"] == sum(each.return_ for each in found.episodes) / 40
    assert 0 < found.measures["pass@1"] < found.measures["pass@8"] <= 1
    prompt = prompts_of(lesson, 9, 1)[0]
    assert found.sample["prompt"] == prompt
    assert lesson.reward(prompt, found.sample["response"]) == found.episodes[0].return_


def test_a_lesson_that_breaks_its_word_is_named() -> None:
    class Broken(Knowing):
        def reward(self, prompt: str, response: str) -> float:
            return float("nan")

    class Long(Knowing):
        longest_prompt = 1

    vocabulary = vocabulary_of({"broken": Broken()})
    player = SequencePlayer(small_model(len(vocabulary)), vocabulary)

    with pytest.raises(ConfigError, match=r"Broken gave the response .* the reward nan"):
        player.play(Broken(), Wanted(episodes=1, seed=0))
    with pytest.raises(ConfigError, match=r"Long made the prompt '[ab]c' of 2 characters; .* 1 to 1"):
        player.play(Long(), Wanted(episodes=1, seed=0))


def test_an_evaluation_keeps_to_its_time() -> None:
    vocabulary = vocabulary_of(LESSONS)
    player = SequencePlayer(build_model(NETWORK, vocabulary, LESSONS), vocabulary, pass_k=512)

    found = player.play(LESSONS["copy"], Wanted(episodes=5, seed=0, max_seconds=1e-9))

    assert len(found.episodes) + found.failed == 5
    assert found.failed > 0
    assert "1e-09 seconds" in found.why


def test_an_evaluation_needs_a_lesson() -> None:
    vocabulary = vocabulary_of(LESSONS)
    player = SequencePlayer(build_model(NETWORK, vocabulary, LESSONS), vocabulary)

    with pytest.raises(ConfigError, match="names a lesson, got None"):
        player.play(None, Wanted(episodes=1, seed=0))
