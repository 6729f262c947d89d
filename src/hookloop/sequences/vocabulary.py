"""The symbols of a run and their numbers: padding, the end of a sequence, and characters."""

from __future__ import annotations

from collections.abc import Iterable

from hookloop.errors import ConfigError

PAD = 0
END = 1
NOTHING = "\N{SYMBOL FOR NULL}"
"""What padding reads as where a model has drawn it; no lesson has this character."""
_FIRST = 2


class Vocabulary:
    """Characters by number and back; ``PAD`` and ``END`` come before them.

    Args:
        characters: Each once, in order; their numbers follow from it, so a saved model needs the same ones.
    """

    def __init__(self, characters: str) -> None:
        if not characters or len(set(characters)) != len(characters):
            raise ConfigError(f"A vocabulary needs characters, each once, got {characters!r}.")
        self.characters = characters
        self._numbers = {character: number for number, character in enumerate(characters, _FIRST)}

    def __len__(self) -> int:
        return len(self.characters) + _FIRST

    def encode(self, text: str) -> list[int]:
        """Return the numbers of a text's characters."""
        try:
            return [self._numbers[character] for character in text]
        except KeyError as error:
            raise ConfigError(
                f"The character {error.args[0]!r} of {text!r:.60} is not among the {len(self.characters)} of this "
                f"vocabulary, {self.characters!r}; a lesson names all that it uses in 'symbols'."
            ) from None

    def decode(self, numbers: Iterable[int]) -> str:
        """Return the text up to the end."""
        found: list[str] = []
        for number in numbers:
            if number == END:
                break
            found.append(NOTHING if number == PAD else self.characters[number - _FIRST])
        return "".join(found)
