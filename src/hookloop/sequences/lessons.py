"""What a lesson of sequences is: a generator of prompts and a reward for responses. No torch in here.

::

    @register_lesson("parity")
    class Parity:
        symbols = "01?eo"
        longest_prompt, longest_response = 5, 1

        def prompt(self, rng):
            return "".join(rng.choices("01", k=4)) + "?"

        def reward(self, prompt, response):
            return float(response == "eo"[prompt.count("1") % 2])

A curriculum names it as the environment of a lesson: ``Lesson(env=LessonEnv(id="parity"))``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from hookloop.curriculum.config import CurriculumConfig
from hookloop.errors import ConfigError, NameClashError, UnknownNameError


class SequenceLesson(Protocol):
    """Prompts, and what a response to one is worth.

    One that knows the right answers also has ``answer(prompt: str) -> str``; ``Imitation`` learns from them.
    """

    @property
    def symbols(self) -> str:
        """All characters that prompts and right responses are made of."""
        ...

    @property
    def longest_prompt(self) -> int:
        """The most characters of a prompt."""
        ...

    @property
    def longest_response(self) -> int:
        """The most characters of a right response; what is longer is cut off."""
        ...

    def prompt(self, rng: random.Random) -> str:
        """Return a prompt: the same for the same random numbers."""
        ...

    def reward(self, prompt: str, response: str) -> float:
        """Return what a response is worth; above 0 is a success, unless the curriculum says otherwise."""
        ...


MakeLesson = Callable[..., SequenceLesson]
M = TypeVar("M", bound=Callable[..., object])

_registered: dict[str, MakeLesson] = {}


def register_lesson(name: str) -> Callable[[M], M]:
    """Make a class of lessons, or a function that returns one, available to curricula as ``name``."""

    def register(make: M) -> M:
        if name in _registered and _registered[name] is not make:
            raise NameClashError(f"The lesson name {name!r} is taken by {_registered[name]!r}; choose another.")
        _registered[name] = make  # type: ignore[assignment]  # what it returns is checked when it is made
        return make

    return register


def make_lesson(name: str, kwargs: Mapping[str, Any] | None = None) -> SequenceLesson:
    """Return the lesson registered as ``name``, made with these arguments."""
    import hookloop.sequences.built_in  # noqa: F401  # registers those that come with the package

    if name not in _registered:
        raise UnknownNameError("lesson of sequences called", name, _registered)
    try:
        lesson = _registered[name](**(kwargs or {}))
    except TypeError as error:
        raise ConfigError(f"The lesson {name!r} cannot be made with {dict(kwargs or {})}: {error}.") from error
    _check(name, lesson)
    return lesson


def make_lessons(curriculum: CurriculumConfig) -> dict[str, SequenceLesson]:
    """Return the lessons of a curriculum by their names in it; one without an ``env.id`` is registered as its name."""
    return {name: make_lesson(each.env.id or name, each.env.kwargs) for name, each in curriculum.lessons.items()}


def _check(name: str, lesson: object) -> None:
    needed = ("symbols", "longest_prompt", "longest_response", "prompt", "reward")
    missing = [each for each in needed if not hasattr(lesson, each)]
    if missing:
        raise ConfigError(f"The lesson {name!r} lacks {', '.join(missing)}; a lesson has {', '.join(needed)}.")
