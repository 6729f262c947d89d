"""Forms of plain data: how a value is written as JSON has it, and read back from a file that nobody vouches for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

from hookloop.errors import SnapshotError

Plain = Any
Value = Any


@dataclass(frozen=True, slots=True)
class Form:
    """One kind of value: ``write`` returns it as plain data; ``read`` takes plain data and where they stand."""

    write: Callable[[Value], Plain]
    read: Callable[[Plain, str], Value]


def whole(least: int, most: int) -> Form:
    """Return the form of a whole number."""

    def read(found: Plain, place: str) -> int:
        if isinstance(found, bool) or not isinstance(found, int) or not least <= found <= most:
            raise _wrong(place, f"a whole number from {least} to {most}", found)
        return found

    return Form(int, read)


def number(least: float, most: float) -> Form:
    """Return the form of a finite number."""

    def read(found: Plain, place: str) -> float:
        is_number = isinstance(found, int | float) and not isinstance(found, bool)
        if not is_number or not least <= found <= most or not math.isfinite(found):
            raise _wrong(place, f"a number from {least:g} to {most:g}", found)
        return float(found)

    return Form(float, read)


def truth() -> Form:
    """Return the form of true and false."""

    def read(found: Plain, place: str) -> bool:
        if not isinstance(found, bool):
            raise _wrong(place, "true or false", found)
        return found

    return Form(bool, read)


def text(most_letters: int, *, has_lines: bool = False) -> Form:
    """Return the form of a text that cannot steer a terminal.

    What is not to be seen is written as question marks, and refused where it is read; so is what is too long.
    """

    def write(value: str) -> str:
        cut = value[:most_letters]
        return cut if is_shown(cut) else "".join(each if is_shown(each) else "?" for each in cut)

    def is_shown(value: str) -> bool:
        return value.isprintable() or (has_lines and value.replace("\n", "").isprintable())

    def read(found: Plain, place: str) -> str:
        if not isinstance(found, str) or len(found) > most_letters or not is_shown(found):
            raise _wrong(place, f"a text of at most {most_letters} letters, all of them to be seen", found)
        return found

    return Form(write, read)


def optional(form: Form) -> Form:
    """Return the form of something that may be None."""
    return Form(
        lambda value: None if value is None else form.write(value),
        lambda found, place: None if found is None else form.read(found, place),
    )


def several(form: Form, most: int, *, least: int = 0) -> Form:
    """Return the form of a tuple of one kind of value; a list in JSON."""

    def read(found: Plain, place: str) -> tuple[Value, ...]:
        if not isinstance(found, list) or not least <= len(found) <= most:  # type: ignore[reportUnknownArgumentType]
            raise _wrong(place, f"a list of {least} to {most}", found)
        return tuple(form.read(each, f"{place}[{number}]") for number, each in enumerate(found))  # type: ignore[reportUnknownArgumentType]

    return Form(lambda value: [form.write(each) for each in value], read)


def both(first: Form, second: Form) -> Form:
    """Return the form of a tuple of two; a list in JSON."""

    def read(found: Plain, place: str) -> tuple[Value, Value]:
        if not isinstance(found, list) or len(found) != 2:  # type: ignore[reportUnknownArgumentType]
            raise _wrong(place, "a list of 2", found)
        return first.read(found[0], f"{place}[0]"), second.read(found[1], f"{place}[1]")

    return Form(lambda value: [first.write(value[0]), second.write(value[1])], read)


def unordered(form: Form, most: int) -> Form:
    """Return the form of a frozen set; a sorted list in JSON."""
    listed = several(form, most)
    return Form(lambda value: listed.write(sorted(value)), lambda found, place: frozenset(listed.read(found, place)))


def named(form: Form, most: int, most_letters: int = 40) -> Form:
    """Return the form of a mapping from names to one kind of value."""
    name_form = text(most_letters)

    def read(found: Plain, place: str) -> dict[str, Value]:
        pairs = _mapping(found, place)
        if len(pairs) > most:
            raise _wrong(place, f"a mapping of at most {most}", f"one of {len(pairs)}")
        return {name_form.read(name, place): form.read(value, f"{place}.{name}") for name, value in pairs.items()}

    return Form(lambda value: {name_form.write(name): form.write(each) for name, each in value.items()}, read)


def record(
    made: Callable[..., Value], forms: Mapping[str, Form], fault_of: Callable[[Value], str] | None = None
) -> Form:
    """Return the form of a dataclass, by the forms of its fields.

    A field with a default may be missing; names that are not known are left to whoever knows them.

    Args:
        made: The dataclass.
        forms: Each field's.
        fault_of: What is wrong with the fields taken together; nothing if it returns an empty text.
    """
    declared = fields(made)  # type: ignore[arg-type]  # a dataclass
    required = {each.name for each in declared if each.default is MISSING and each.default_factory is MISSING}

    def read(found: Plain, place: str) -> Value:
        pairs = _mapping(found, place)
        for name in sorted(required - set(pairs)):
            raise SnapshotError(f"{place or 'it'} has no {name}.")
        within = f"{place}." if place else ""
        value = made(**{name: form.read(pairs[name], within + name) for name, form in forms.items() if name in pairs})
        fault = "" if fault_of is None else fault_of(value)
        if fault:
            raise SnapshotError(f"{place} is wrong: {fault}.")
        return value

    return Form(lambda value: {name: form.write(getattr(value, name)) for name, form in forms.items()}, read)


def _mapping(found: Plain, place: str) -> dict[str, Plain]:
    if not isinstance(found, dict):
        raise _wrong(place, "a mapping", found)
    return found  # type: ignore[reportUnknownVariableType]  # what json makes has texts for keys


def _wrong(place: str, wanted: str, found: object) -> SnapshotError:
    # Long values are cut, and repr leaves nothing in them that a terminal could obey.
    shown = repr(found)
    return SnapshotError(f"{place or 'it'} should be {wanted}, got {shown if len(shown) <= 40 else shown[:39] + '~'}.")
