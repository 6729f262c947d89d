"""Lessons whose answers can be checked: copy, reverse, sort, arithmetic. No torch in here."""

from __future__ import annotations

import random

from hookloop.errors import ConfigError
from hookloop.sequences.lessons import register_lesson

LETTERS = "abcdefgh"
DIGITS = "0123456789"


class _Exact:
    """A lesson with one right answer, worth 1; everything else is worth 0."""

    def answer(self, prompt: str) -> str:
        """Return the right response."""
        raise NotImplementedError

    def reward(self, prompt: str, response: str) -> float:
        """Return 1 for the right response."""
        return 1.0 if response == self.answer(prompt) else 0.0


class _OfText(_Exact):
    """A lesson about a random text; a mark after it says what to do with it."""

    mark: str

    def __init__(self, longest: int = 4, shortest: int = 1, alphabet: str = LETTERS) -> None:
        if not 1 <= shortest <= longest:
            raise ConfigError(f"A text needs 1 <= shortest <= longest, got shortest={shortest} and longest={longest}.")
        if not alphabet or self.mark in alphabet:
            raise ConfigError(f"The alphabet {alphabet!r} must have characters, and not the mark {self.mark!r}.")
        self.alphabet, self.shortest = alphabet, shortest
        self.symbols = alphabet + self.mark
        self.longest_prompt, self.longest_response = longest + 1, longest

    def prompt(self, rng: random.Random) -> str:
        """Return a text of any of the lengths, all alike."""
        length = rng.randint(self.shortest, self.longest_response)
        return "".join(rng.choices(self.alphabet, k=length)) + self.mark


@register_lesson("copy")
class Copy(_OfText):
    """``abc=`` is answered by ``abc``."""

    mark = "="

    def answer(self, prompt: str) -> str:
        """Return the text."""
        return prompt[:-1]


@register_lesson("reverse")
class Reverse(_OfText):
    """``abc<`` is answered by ``cba``."""

    mark = "<"

    def answer(self, prompt: str) -> str:
        """Return the text backwards."""
        return prompt[-2::-1]


@register_lesson("sort")
class Sort(_OfText):
    """``cab^`` is answered by ``abc``: in the order of the alphabet as it was given."""

    mark = "^"

    def answer(self, prompt: str) -> str:
        """Return the characters in order."""
        return "".join(sorted(prompt[:-1], key=self.alphabet.index))


@register_lesson("arithmetic")
class Arithmetic(_Exact):
    """``7+5=`` is answered by ``12``, ``5-7=`` by ``-2``.

    Args:
        largest: The largest number that is added or taken away.
        operations: Any of ``+`` and ``-``, all alike.
        lowest_first: Write the digits of the answer from the lowest on, as one adds by hand: ``7+5=`` by ``21``.
    """

    def __init__(self, largest: int = 9, operations: str = "+", lowest_first: bool = False) -> None:
        if largest < 1:
            raise ConfigError(f"The largest number must be at least 1, got largest={largest}.")
        if not operations or set(operations) - set("+-"):
            raise ConfigError(f"operations are '+', '-' or '+-', got {operations!r}.")
        self.largest, self.operations, self.lowest_first = largest, operations, lowest_first
        self.symbols = DIGITS + "+-="
        digits = len(str(largest))
        self.longest_prompt, self.longest_response = 2 * digits + 2, max(len(str(2 * largest)), digits + 1)

    def prompt(self, rng: random.Random) -> str:
        """Return two numbers, each from 0 to the largest, and what to do with them."""
        left, right = rng.randint(0, self.largest), rng.randint(0, self.largest)
        return f"{left}{rng.choice(self.operations)}{right}="

    def answer(self, prompt: str) -> str:
        """Return the sum or the difference."""
        for operation, sign in (("+", 1), ("-", -1)):
            left, found, right = prompt[:-1].partition(operation)
            if found:
                result = int(left) + sign * int(right)
                digits = str(abs(result))
                return ("-" if result < 0 else "") + (digits[::-1] if self.lowest_first else digits)
        raise ConfigError(f"{prompt!r} is no sum and no difference.")
