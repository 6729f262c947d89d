"""Lessons: prompts that follow from a seed, answers that can be checked, a registry for those of users."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookloop.curriculum import CurriculumConfig, Lesson, LessonEnv
from hookloop.errors import ConfigError, NameClashError, UnknownNameError
from hookloop.sequences.lessons import make_lesson, make_lessons, register_lesson
from hookloop.sequences.rollout import prompts_of, vocabulary_of
from hookloop.sequences.vocabulary import END, PAD, Vocabulary

BUILT_IN: dict[str, dict[str, Any]] = {
    "copy": {"longest": 5},
    "reverse": {"longest": 5, "shortest": 2},
    "sort": {"longest": 6, "alphabet": "3142"},
    "arithmetic": {"largest": 120, "operations": "+-"},
}


@pytest.mark.parametrize("name", BUILT_IN)
@given(seed=st.integers(0, 2**40))
def test_a_lesson_keeps_what_it_says_of_itself(name: str, seed: int) -> None:
    lesson: Any = make_lesson(name, BUILT_IN[name])

    prompt = lesson.prompt(random.Random(seed))
    answer = lesson.answer(prompt)

    assert prompt == lesson.prompt(random.Random(seed))
    assert len(prompt) <= lesson.longest_prompt
    assert len(answer) <= lesson.longest_response
    assert set(prompt + answer) <= set(lesson.symbols)
    assert lesson.reward(prompt, answer) == 1
    assert lesson.reward(prompt, answer + answer[-1:] + "?") == lesson.reward(prompt, "") == 0


@pytest.mark.parametrize(
    ("name", "kwargs", "prompt", "answer"),
    [
        ("copy", {}, "abc=", "abc"),
        ("reverse", {}, "abc<", "cba"),
        ("reverse", {}, "a<", "a"),
        ("sort", {"alphabet": "cba"}, "abca^", "cbaa"),
        ("arithmetic", {}, "7+5=", "12"),
        ("arithmetic", {}, "5-7=", "-2"),
        ("arithmetic", {}, "0-0=", "0"),
        ("arithmetic", {"lowest_first": True}, "97+5=", "201"),
        ("arithmetic", {"lowest_first": True}, "5-97=", "-29"),
    ],
)
def test_the_answers_are_right(name: str, kwargs: dict[str, Any], prompt: str, answer: str) -> None:
    lesson: Any = make_lesson(name, kwargs)

    assert lesson.answer(prompt) == answer


def test_all_sums_of_one_digit_come_up() -> None:
    prompts = prompts_of(make_lesson("arithmetic"), 0, 2000)

    assert set(prompts) == {f"{left}+{right}=" for left in range(10) for right in range(10)}


def test_prompts_follow_from_the_seed_one_by_one() -> None:
    lesson = make_lesson("copy")

    assert prompts_of(lesson, 3, 8)[:4] == prompts_of(lesson, 3, 4)
    assert prompts_of(lesson, 3, 8) != prompts_of(lesson, 4, 8)


def test_a_lesson_of_a_user_is_found_by_its_name() -> None:
    @register_lesson("test_parity")
    class Parity:
        symbols, longest_prompt, longest_response = "01?eo", 5, 1

        def __init__(self, length: int = 4) -> None:
            self.length = length

        def prompt(self, rng: random.Random) -> str:
            return "".join(rng.choices("01", k=self.length)) + "?"

        def reward(self, prompt: str, response: str) -> float:
            return float(response == "eo"[prompt.count("1") % 2])

    lessons = {"odd": Lesson(env=LessonEnv(id="test_parity", kwargs={"length": 2})), "copy": Lesson()}
    made = make_lessons(CurriculumConfig(lessons=lessons))

    assert made["odd"].reward("01?", "o") == 1
    assert len(made["odd"].prompt(random.Random(0))) == 3
    assert vocabulary_of(made).characters == "".join(sorted("01?eo" + "abcdfgh="))
    with pytest.raises(NameClashError, match="test_parity"):
        register_lesson("test_parity")(object)


def test_a_lesson_that_is_unknown_or_cannot_be_made_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'reverse'"):
        make_lesson("revers")
    with pytest.raises(ConfigError, match=r"'copy' cannot be made with \{'lengt': 3\}"):
        make_lesson("copy", {"lengt": 3})


def test_a_lesson_that_lacks_something_is_refused_when_it_is_made() -> None:
    register_lesson("test_half")(lambda: random.Random())

    with pytest.raises(ConfigError, match="lacks symbols, longest_prompt, longest_response, prompt, reward"):
        make_lesson("test_half")


@pytest.mark.parametrize(
    ("name", "kwargs", "message"),
    [
        ("copy", {"longest": 2, "shortest": 3}, "shortest=3"),
        ("copy", {"alphabet": "a="}, "not the mark '='"),
        ("arithmetic", {"largest": 0}, "largest=0"),
        ("arithmetic", {"operations": "*"}, r"got '\*'"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(name: str, kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_lesson(name, kwargs)


@given(text=st.text("abc"))
def test_what_is_encoded_is_decoded(text: str) -> None:
    vocabulary = Vocabulary("abc")

    assert vocabulary.decode([*vocabulary.encode(text), END, PAD, 2]) == text
    assert len(vocabulary) == 5


def test_padding_that_was_drawn_makes_an_answer_wrong() -> None:
    vocabulary = Vocabulary("ab")

    assert vocabulary.decode([2, PAD, 3, END]) not in ("ab", "a")


def test_characters_outside_the_vocabulary_are_refused() -> None:
    with pytest.raises(ConfigError, match="'d' of 'bad' is not among the 3"):
        Vocabulary("abc").encode("bad")
    with pytest.raises(ConfigError, match="each once"):
        Vocabulary("aa")
