"""The text form of schedules: what may be written, that it round-trips, and what a slip of the pen is told."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookloop.core import (
    BUILT_IN_CLOCKS,
    Always,
    At,
    Cycle,
    Every,
    Never,
    Once,
    Schedule,
    When,
    Window,
    as_schedule,
    parse_schedule,
)
from hookloop.errors import ScheduleError

INF = math.inf
OWN_CLOCKS = frozenset({"games", "tree_nodes"})

# What may be written


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("every 50 epochs", Every(50, "epochs")),
        ("every 50 epochs from 100", Every(50, "epochs", start=100)),
        ("every 50 epochs from 100 until 500", Every(50, "epochs", start=100, end=500)),
        ("every 50 epochs until 500", Every(50, "epochs", end=500)),
        ("every 50", Every(50)),
        ("every epoch", Every(1, "epochs")),
        ("every 0.5 seconds", Every(0.5, "seconds")),
        ("every 1e6 env_steps", Every(1_000_000, "env_steps")),
        ("at 5,10,20 epochs", At([5, 10, 20], "epochs")),
        ("at 5 , 10 epochs", At([5, 10], "epochs")),
        ("once at 5 epochs", Once(5, "epochs")),
        ("from 10 until 20 epochs", Window(10, 20, "epochs")),
        ("from 10 epochs", Window(10, INF, "epochs")),
        ("until 20 epochs", Window(0, 20, "epochs")),
        ("cycle 4 epochs on 1,2", Cycle(4, [1, 2], "epochs")),
        ("cycle 4 on 3", Cycle(4, [3])),
        ("always", Always()),
        ("never", Never()),
        ("  every   5\tepochs ", Every(5, "epochs")),
    ],
)
def test_a_text_stands_for_a_schedule(text: str, schedule: Schedule) -> None:
    assert parse_schedule(text) == schedule


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("every second", Every(1, "seconds")),
        ("every 10 minutes", Every(600, "seconds")),
        ("every minute from 5 until 60", Every(60, "seconds", start=300, end=3600)),
        ("every 2 hours", Every(7200, "seconds")),
        ("at 1,2 hours", At([3600, 7200], "seconds")),
        ("once at 1 hour", Once(3600, "seconds")),
        ("from 5 until 10 minutes", Window(300, 600, "seconds")),
        ("until 1.5 hours", Window(0, 5400, "seconds")),
        ("every 5 epoch", Every(5, "epochs")),
        ("every 5 update_epoch", Every(5, "update_epochs")),
        ("every 5 batches", Every(5, "minibatches")),
        ("every batch", Every(1, "minibatches")),
        ("every 5 minibatch", Every(5, "minibatches")),
        ("every optimizer_step", Every(1, "optimizer_steps")),
        ("every 5 timesteps", Every(5, "env_steps")),
        ("every 5 agent_steps", Every(5, "env_steps")),
        ("every 5 global_timestep", Every(5, "env_steps")),
        ("every episode", Every(1, "episodes")),
        ("every 5 policy_versions", Every(5, "policy_version")),
    ],
)
def test_units_are_the_words_people_use(text: str, schedule: Schedule) -> None:
    assert parse_schedule(text) == schedule


def test_not_binds_before_and_which_binds_before_or() -> None:
    a, b, c = Every(2, "epochs"), Window(0, 9, "epochs"), At(5, "epochs")

    assert parse_schedule("at 5 epochs or not every 2 epochs and until 9 epochs") == c | (~a & b)
    assert parse_schedule("(at 5 epochs or not every 2 epochs) and until 9 epochs") == (c | ~a) & b
    assert parse_schedule("not (every 2 epochs and until 9 epochs)") == ~(a & b)


def test_a_workloads_own_clock_is_a_unit_where_it_is_declared() -> None:
    assert parse_schedule("every 5 games", OWN_CLOCKS) == Every(5, "games")


def test_a_schedule_may_be_written_as_a_value_a_text_a_number_or_a_function() -> None:
    def is_late(_ctx: object) -> bool:
        return True

    assert as_schedule(Every(5)) == Every(5)
    assert as_schedule("every 5 epochs") == Every(5, "epochs")
    assert as_schedule(5) == Every(5)
    assert as_schedule(is_late) == When(is_late)


# Round trip

clocks = st.sampled_from([None, *BUILT_IN_CLOCKS, *sorted(OWN_CLOCKS)])
counts = st.integers(0, 10**12)
fractions = st.floats(1e-9, 1e9).map(lambda number: round(number, 9)).filter(lambda number: number > 0)
ticks = counts | fractions
lengths = st.integers(1, 10**12) | fractions


@st.composite
def everies(draw: st.DrawFn) -> Schedule:
    start = draw(ticks)
    end = draw(ticks.filter(lambda tick: tick > start) | st.just(INF))
    return Every(draw(lengths), draw(clocks), start, end)


@st.composite
def windows(draw: st.DrawFn) -> Schedule:
    begin = draw(ticks)
    return Window(begin, draw(ticks.filter(lambda tick: tick > begin) | st.just(INF)), draw(clocks))


@st.composite
def cycles(draw: st.DrawFn) -> Schedule:
    length = draw(st.integers(1, 40))
    return Cycle(length, draw(st.sets(st.integers(1, length), min_size=1)), draw(clocks))


leaves: st.SearchStrategy[Schedule] = st.one_of(
    everies(),
    windows(),
    cycles(),
    st.builds(At, st.sets(ticks, min_size=1, max_size=4), clocks),
    st.builds(Once, ticks, clocks),
    st.sampled_from([Always(), Never()]),
)


def combined(parts: st.SearchStrategy[Schedule]) -> st.SearchStrategy[Schedule]:
    pairs = st.tuples(parts, parts)
    return pairs.map(lambda p: p[0] & p[1]) | pairs.map(lambda p: p[0] | p[1]) | parts.map(lambda p: ~p)


@settings(max_examples=200, deadline=None)
@given(leaves)
def test_a_single_schedule_can_be_written_and_read_back(schedule: Schedule) -> None:
    assert parse_schedule(str(schedule), OWN_CLOCKS) == schedule


@settings(max_examples=200, deadline=None)
@given(st.recursive(leaves, combined, max_leaves=6))
def test_every_combination_can_be_written_and_read_back(schedule: Schedule) -> None:
    assert parse_schedule(str(schedule), OWN_CLOCKS) == schedule


def test_brackets_that_change_nothing_make_no_difference() -> None:
    a, b, c = Every(2), At(5), Window(3, 9)

    assert a & (b & c) == (a & b) & c
    assert a | (b | c) == (a | b) | c


def test_a_predicate_is_shown_by_its_name_and_cannot_be_read_back() -> None:
    def is_late(_ctx: object) -> bool:
        return True

    assert str(Every(5) & When(is_late)) == "every 5 and when is_late"
    with pytest.raises(ScheduleError, match="'when'"):
        parse_schedule("when is_late")


# Slips of the pen


def refusal_of(text: str, clocks: Iterable[str] = ()) -> str:
    with pytest.raises(ScheduleError) as caught:
        parse_schedule(text, frozenset(clocks))
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "slip", "suggestion"),
    [
        ("evry 5 epochs", "evry", "every"),
        ("onec at 5 epochs", "onec", "once"),
        ("EVERY 5 epochs", "EVERY", "every"),
        ("every 5 epochs and cicle 4 epochs on 1", "cicle", "cycle"),
        ("every 5 epocs", "epocs", "epochs"),
        ("every 10 minuts", "minuts", "minutes"),
        ("until 20 timestep_s", "timestep_s", "timesteps"),
        ("every 5 gamez", "gamez", "games"),
        ("every 5 epochs untl 30", "untl", "until"),
        ("every 5 epochs form 30", "form", "from"),
        ("every 5 epochs adn until 9 epochs", "adn", "and"),
    ],
)
def test_a_misspelt_word_is_told_with_the_nearest_right_one(text: str, slip: str, suggestion: str) -> None:
    message = refusal_of(text, OWN_CLOCKS)

    assert repr(text) in message
    assert repr(slip) in message
    assert f"Did you mean {suggestion!r}?" in message


@pytest.mark.parametrize(
    ("text", "expected", "place"),
    [
        ("", "a schedule", "the start"),
        ("every", "a number or a clock", "every"),
        ("at", "a number", "at"),
        ("at 5, epochs", "a number, not 'epochs'", "at 5 ,"),
        ("from epochs", "a number, not 'epochs'", "from"),
        ("cycle 4 epochs", "'on'", "cycle 4 epochs"),
        ("cycle 4 epochs on", "a number", "cycle 4 epochs on"),
        ("once 5 epochs", "'at'", "once"),
        ("every 5 epochs and", "a schedule", "every 5 epochs and"),
        ("(every 5 epochs", "')'", "( every 5 epochs"),
        ("not", "a schedule", "not"),
    ],
)
def test_what_is_missing_is_named_with_its_place_and_an_example(text: str, expected: str, place: str) -> None:
    message = refusal_of(text)

    assert repr(text) in message
    assert f"needs {expected}" in message
    assert f"after {place!r}" in message
    assert "'every 50 epochs from 100'" in message


@pytest.mark.parametrize(
    ("text", "surplus"),
    [("every 5 epochs)", "')'"), ("at 5 10 epochs", "'10'"), ("every 5 epochs every 6 epochs", "'every'")],
)
def test_what_stands_there_too_much_is_named(text: str, surplus: str) -> None:
    assert surplus in refusal_of(text)


@pytest.mark.parametrize(("text", "character"), [("every 5 epochs;", "';'"), ("every -5 epochs", "'-'")])
def test_a_character_that_means_nothing_is_named(text: str, character: str) -> None:
    message = refusal_of(text)

    assert repr(text) in message
    assert character in message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("every 0 epochs", "interval.*above 0.*every 0"),
        ("every 5 epochs from 10 until 5", "from 10 until 5 is empty.*from < until"),
        ("until 0 epochs", "is empty"),
        ("from 20 until 10 epochs", "is empty"),
        ("cycle 4 epochs on 5", "Position 5 is outside a cycle of 4.*from 1 to 4"),
        ("cycle 0 epochs on 1", "length.*at least 1, got 0"),
        ("cycle 2.5 epochs on 1", "length.*whole number.*2.5"),
        ("cycle 4 epochs on 1.5", "1.5"),
        ("cycle 10 minutes on 1", "minutes.*seconds"),
    ],
)
def test_a_text_that_says_something_impossible_is_refused(text: str, words: str) -> None:
    assert re.search(words, refusal_of(text))
