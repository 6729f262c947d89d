"""The text form of schedules, for configuration files and the command line.

::

    every 50 epochs [from 100] [until 500]     every epoch     every 10 minutes
    at 5,10,20 epochs                          once at 5 epochs
    from 10 until 20 epochs                    from 10 epochs        until 20 epochs
    cycle 4 epochs on 1,2                      always                never
    ... and ...      ... or ...      not ...      ( ... )

``parse_schedule(str(schedule)) == schedule`` for every schedule without a predicate.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from hookloop.core.clocks import CLOCK_ALIASES, SECONDS, canonical_clock
from hookloop.core.instants import At, Every, Once
from hookloop.core.schedules import INF, Always, Never, Schedule, When
from hookloop.core.spans import Cycle, Window
from hookloop.errors import ScheduleError, UnknownNameError, did_you_mean

SECONDS_PER = {"seconds": 1, "second": 1, "minutes": 60, "minute": 60, "hours": 3600, "hour": 3600}
KEYWORDS = ("every", "at", "once", "from", "until", "on", "cycle", "always", "never", "and", "or", "not")

_TOKEN = re.compile(r"\s*(?:(?P<number>\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?)|(?P<word>[A-Za-z_]\w*)|(?P<mark>[(),]))")


def parse_schedule(text: str, clocks: frozenset[str] = frozenset()) -> Schedule:
    """Read a schedule from its text form; ``clocks`` are a workload's own clock names."""
    return _Reader(text, _tokens(text), clocks).whole()


def as_schedule(value: object, clocks: frozenset[str] = frozenset()) -> Schedule:
    """Turn what people write for a schedule into one: a schedule, a text, a number or a predicate."""
    if isinstance(value, Schedule):
        return value
    if isinstance(value, str):
        return parse_schedule(value, clocks)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Every(value)
    if callable(value):
        return When(value)
    raise ScheduleError(
        f"{value!r} is no schedule: write a text such as 'every 50 epochs', a number, or a Schedule such as Every(50)."
    )


def _tokens(text: str) -> list[str]:
    found: list[str] = []
    position = 0
    while position < len(text.rstrip()):
        match = _TOKEN.match(text, position)
        if match is None:
            mark = text[position:].strip()[0]
            hint = "; numbers are 0 or above" if mark == "-" else ""
            raise ScheduleError(f"In the schedule {text!r} the character {mark!r} means nothing{hint}.")
        found.append(match.group().strip())
        position = match.end()
    return found


@dataclass(slots=True)
class _Reader:
    """A recursive descent over the tokens; one method per rule of the grammar."""

    text: str
    tokens: list[str]
    clocks: frozenset[str]
    at: int = 0

    def whole(self) -> Schedule:
        schedule = self.union()
        if self.at < len(self.tokens):
            word = self.tokens[self.at]
            hint = did_you_mean(word, ("from", "until", "and", "or", "on")) if word[0].isalpha() else ""
            raise ScheduleError(f"The schedule {self.text!r} should end before {word!r}.{hint}")
        return schedule

    def union(self) -> Schedule:
        schedule = self.intersection()
        while self.took("or"):
            schedule = schedule | self.intersection()
        return schedule

    def intersection(self) -> Schedule:
        schedule = self.part()
        while self.took("and"):
            schedule = schedule & self.part()
        return schedule

    def part(self) -> Schedule:
        if self.took("not"):
            return ~self.part()
        if self.took("("):
            schedule = self.union()
            self.expect(")")
            return schedule
        rules: dict[str, Callable[[], Schedule]] = {
            "every": self.every,
            "at": self.at_ticks,
            "once": self.once,
            "from": self.window_from,
            "until": self.window_until,
            "cycle": self.cycle,
            "always": Always,
            "never": Never,
        }
        if self.is_number():
            raise ScheduleError(
                f"The schedule {self.text!r} starts a part with a number; write 'every {self.tokens[self.at]} ...'."
            )
        word = self.take("a schedule")
        if word not in rules:
            raise ScheduleError(f"The schedule {self.text!r} starts a part with {word!r}.{did_you_mean(word, rules)}")
        return rules[word]()

    def every(self) -> Schedule:
        is_counted = self.is_number()
        n = self.number() if is_counted else 1
        clock, scale = self.unit()
        if clock is None and not is_counted:
            raise self.wrong("a number or a clock")
        start = self.number() * scale if self.took("from") else 0
        end = self.number() * scale if self.took("until") else INF
        return Every(n * scale, clock, start, end)

    def at_ticks(self) -> Schedule:
        ticks = self.numbers()
        clock, scale = self.unit()
        return At([tick * scale for tick in ticks], clock)

    def once(self) -> Schedule:
        self.expect("at")
        tick = self.number()
        clock, scale = self.unit()
        return Once(tick * scale, clock)

    def window_from(self) -> Schedule:
        begin = self.number()
        end = self.number() if self.took("until") else INF
        clock, scale = self.unit()
        return Window(begin * scale, end * scale, clock)

    def window_until(self) -> Schedule:
        end = self.number()
        clock, scale = self.unit()
        return Window(0, end * scale, clock)

    def cycle(self) -> Schedule:
        length = self.number()
        clock, scale = self.unit()
        if scale != 1:
            raise ScheduleError(f"The schedule {self.text!r} counts a cycle in minutes or hours; count it in seconds.")
        self.expect("on")
        return Cycle(cast("int", length), cast("list[int]", self.numbers()), clock)  # refused there if not whole

    def unit(self) -> tuple[str | None, float]:
        """Read an optional clock name; minutes and hours are seconds in bigger numbers."""
        word = self.tokens[self.at] if self.at < len(self.tokens) else ""
        if not word or word in KEYWORDS or not word[0].isalpha():
            return None, 1
        self.at += 1
        if word in SECONDS_PER:
            return SECONDS, SECONDS_PER[word]
        try:
            return canonical_clock(word, self.clocks), 1
        except UnknownNameError as error:
            known = (*CLOCK_ALIASES, *CLOCK_ALIASES.values(), *SECONDS_PER, *self.clocks)
            raise ScheduleError(
                f"The schedule {self.text!r} counts in {word!r}, which is no clock.{did_you_mean(word, known)}"
            ) from error

    def numbers(self) -> list[float]:
        found = [self.number()]
        while self.took(","):
            found.append(self.number())
        return found

    def number(self) -> float:
        if not self.is_number():
            found = f", not {self.tokens[self.at]!r}," if self.at < len(self.tokens) else ""
            raise self.wrong(f"a number{found}")
        value = float(self.take("a number"))
        return int(value) if value == int(value) else value

    def is_number(self) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at][0].isdigit()

    def took(self, word: str) -> bool:
        if self.at < len(self.tokens) and self.tokens[self.at] == word:
            self.at += 1
            return True
        return False

    def expect(self, word: str) -> None:
        if not self.took(word):
            raise self.wrong(repr(word))

    def take(self, what: str) -> str:
        if self.at >= len(self.tokens):
            raise self.wrong(what)
        self.at += 1
        return self.tokens[self.at - 1]

    def wrong(self, expected: str) -> ScheduleError:
        before = " ".join(self.tokens[: self.at]) or "the start"
        return ScheduleError(
            f"The schedule {self.text!r} needs {expected} after {before!r}; for example 'every 50 epochs from 100'."
        )
