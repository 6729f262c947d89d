"""Schedules: what their sets hold, when they are due, and that looking ahead and resuming never change that."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hookloop.core import Always, At, Cycle, Every, Never, Once, Schedule, When, Window
from hookloop.core.due import Rule
from hookloop.core.schedules import Leaf
from hookloop.errors import ScheduleError
from hookloop.testing import Harness

INF = math.inf
TICKS = range(61)
Move = dict[str, float]

quickly = settings(max_examples=150, deadline=None)


# What is generated


def everies(clock: str | None) -> st.SearchStrategy[Every]:
    def build(n: int, start: int, length: int | None) -> Every:
        return Every(n, clock, start, INF if length is None else start + length)

    return st.builds(build, st.integers(1, 15), st.integers(0, 30), st.none() | st.integers(1, 40))


def windows(clock: str | None) -> st.SearchStrategy[Window]:
    def build(begin: int, length: int | None) -> Window:
        return Window(begin, INF if length is None else begin + length, clock)

    return st.builds(build, st.integers(0, 30), st.none() | st.integers(1, 30))


@st.composite
def cycles(draw: st.DrawFn, clock: str | None) -> Cycle:
    length = draw(st.integers(1, 12))
    return Cycle(length, draw(st.sets(st.integers(1, length), min_size=1)), clock)


def instants(clock: str | None) -> st.SearchStrategy[Schedule]:
    ats = st.builds(At, st.sets(st.integers(0, 60), min_size=1, max_size=5), st.just(clock))
    return everies(clock) | ats | st.builds(Once, st.integers(0, 60), st.just(clock))


def leaves(*clocks: str | None) -> st.SearchStrategy[Schedule]:
    kinds = [kind(clock) for clock in clocks for kind in (instants, windows, cycles)]
    return st.one_of(*kinds, st.just(Always()), st.just(Never()))


def expressions(*clocks: str | None, max_leaves: int = 5) -> st.SearchStrategy[Schedule]:
    def combine(parts: st.SearchStrategy[Schedule]) -> st.SearchStrategy[Schedule]:
        both = st.tuples(parts, parts)
        return both.map(lambda p: p[0] & p[1]) | both.map(lambda p: p[0] | p[1]) | parts.map(lambda p: ~p)

    return st.recursive(leaves(*clocks), combine, max_leaves=max_leaves)


jumps = st.lists(st.integers(0, 25), max_size=12)
"""How far a clock moves from one event to the next, also not at all."""

moves = st.lists(
    st.fixed_dictionaries(
        {
            "env_steps": st.integers(0, 25),
            "epochs": st.integers(0, 3),
            "seconds": st.integers(0, 40).map(lambda quarters: quarters / 4),
        }
    ),
    max_size=12,
)


# How it is driven


class Driver:
    """Takes one hook per schedule through the real dispatcher, and notes at which events each is called."""

    def __init__(self, schedules: Sequence[Schedule], *, event: str = "step_end", first_event: int = 0) -> None:
        self.harness = Harness()
        self.fired: list[list[int]] = [[] for _ in schedules]
        self._event = event
        self._index = first_event - 1
        for number, schedule in enumerate(schedules):
            self.harness.hooks.add(self._note(number), name=f"hook_{number}", on=event, schedule=schedule)

    def drive(self, moves: Sequence[Move]) -> Driver:
        for move in moves:
            self._index += 1
            self.harness.advance(**move)
            self.harness.fire(self._event)
        return self

    def resumed(self, schedules: Sequence[Schedule]) -> Driver:
        saved = json.loads(json.dumps([self.harness.state.state_dict(), self.harness.hooks.state_dict()]))
        other = Driver(schedules, event=self._event, first_event=self._index + 1)
        other.harness.state.load_state_dict(saved[0])
        other.harness.hooks.load_state_dict(saved[1])
        return other

    def _note(self, number: int):
        return lambda: self.fired[number].append(self._index)


def fired(schedule: Schedule, moves: Sequence[Move], event: str = "step_end") -> list[int]:
    return Driver([schedule], event=event).drive(moves).fired[0]


def env_steps(*jumps: int) -> list[Move]:
    return [{"env_steps": jump} for jump in jumps]


def judged_one_by_one(schedule: Schedule, moves: Sequence[Move], clock: str = "env_steps") -> list[int]:
    """Decide at each event from the readings at this event and at the one before, without looking ahead."""
    rule = Rule(schedule, clock)
    found: list[int] = []
    now = {"env_steps": 0.0, "epochs": 0.0, "seconds": 0.0}
    before: dict[str, float] = {}
    for index, move in enumerate(moves):
        now = {name: now[name] + move.get(name, 0) for name in now}
        if rule.is_due(now, before):
            found.append(index)
        before = now
    return found


def ticks_of(schedule: Schedule) -> set[int]:
    return {tick for tick in TICKS if schedule.is_due(tick, tick - 1)}


# Values


def test_every_is_due_once_per_interval_even_when_the_clock_jumps() -> None:
    every = Every(100)

    assert not every.is_due(now=99, since=0)
    assert every.is_due(now=256, since=0)
    assert not every.is_due(now=260, since=256)


def test_every_leaves_out_zero_and_its_start_and_holds_its_end() -> None:
    assert ticks_of(Every(5)) == set(range(5, 61, 5))
    assert ticks_of(Every(5, start=10, end=25)) == {15, 20, 25}


def test_at_is_due_once_per_passed_group_of_its_ticks() -> None:
    at = At([5, 6, 20])

    assert ticks_of(at) == {5, 6, 20}
    assert fired(at, env_steps(4, 4, 4, 8)) == [1, 3]


def test_a_window_holds_its_beginning_and_not_its_end() -> None:
    assert ticks_of(Window(3, 6)) == {3, 4, 5}


def test_a_cycle_counts_positions_from_one_and_ticks_from_zero() -> None:
    assert ticks_of(Cycle(4, [1, 2])) == {tick for tick in TICKS if tick % 4 in (0, 1)}


def test_a_span_asks_where_the_clock_stands_and_not_what_it_passed() -> None:
    assert not Window(10, 20).is_due(now=25, since=5)
    assert not Cycle(10, [1]).is_due(now=15, since=5)


def test_equal_schedules_are_equal_values_however_they_were_written() -> None:
    assert At([3, 1, 3]) == At([1, 3])
    assert Cycle(4, {2, 1}, "epochs") == Cycle(4, (1, 2), "epochs")
    assert len({Every(5, "epochs"), Every(5, "epochs"), Every(5)}) == 2


def test_a_schedule_without_a_clock_counts_on_the_clock_of_the_event() -> None:
    bound = (Every(5) | ~Window(3, 9, "seconds") | Cycle(2, [1])).on("epochs")

    assert bound == Every(5, "epochs") | ~Window(3, 9, "seconds") | Cycle(2, [1], "epochs")


@pytest.mark.parametrize(
    ("schedule", "now", "expected"),
    [
        (Every(10), 25, 30),
        (Every(10, start=100), 25, 110),
        (Every(10, end=25), 21, INF),
        (At([5, 50]), 5, 50),
        (Window(40, 50), 3, 40),
        (Window(40, 50), 60, INF),
        (Cycle(10, [8]), 9, 17),
        (Every(6) & Every(4), 1, 12),
        (Every(10) & Window(35, 60), 1, 40),
        (Every(10) | At(13), 11, 13),
        (Never(), 3, INF),
    ],
    ids=str,
)
def test_next_names_the_first_tick_at_which_it_can_be_due(schedule: Schedule, now: float, expected: float) -> None:
    assert schedule.next(now) == expected


def test_one_number_cannot_say_when_a_schedule_on_two_clocks_is_due() -> None:
    with pytest.raises(ScheduleError, match=r"counted on 2 clocks \(epochs, seconds\).*ask each part"):
        (Every(5, "epochs") | Every(60, "seconds")).next(0)


def test_a_predicate_is_asked_at_each_event_at_which_the_clocks_agree() -> None:
    asked: list[int] = []

    def is_late(ctx) -> bool:
        asked.append(ctx.step)
        return ctx.step > 10

    assert fired(Every(5) & When(is_late), env_steps(*[1] * 20)) == [14, 19]
    assert asked == [5, 10, 15, 20]


# Crossing


def readings_of(jumps: Sequence[int]) -> list[tuple[int, int]]:
    """Return the reading before and at each event; nobody has looked before the first."""
    readings = list(accumulate(jumps))
    return list(zip([-1, *readings], readings, strict=False))


@quickly
@given(everies(None), jumps)
@example(Every(7), [7, 7, 49, 0, 1])
def test_every_fires_exactly_when_one_of_its_multiples_was_passed(every: Every, jumps: list[int]) -> None:
    expected = [
        index
        for index, (before, now) in enumerate(readings_of(jumps))
        if any(every.start < m <= every.end and before < m <= now for m in range(0, now + 1, int(every.n)))
    ]

    assert fired(every, env_steps(*jumps)) == expected


@quickly
@given(st.sets(st.integers(0, 100), min_size=1, max_size=6), jumps)
def test_at_fires_exactly_when_one_of_its_ticks_was_passed(ticks: set[int], jumps: list[int]) -> None:
    expected = [
        index for index, (before, now) in enumerate(readings_of(jumps)) if any(before < tick <= now for tick in ticks)
    ]

    assert fired(At(ticks), env_steps(*jumps)) == expected


@quickly
@given(st.integers(0, 60), jumps)
def test_once_fires_once(tick: int, jumps: list[int]) -> None:
    calls = fired(Once(tick), env_steps(*jumps))

    assert len(calls) == (sum(jumps) >= tick and bool(jumps))


@quickly
@given(windows(None), jumps)
@example(Window(5, 8), [5, 0, 0, 2, 0, 1])
def test_a_window_fires_at_every_event_inside_it(window: Window, jumps: list[int]) -> None:
    expected = [i for i, (_, now) in enumerate(readings_of(jumps)) if window.begin <= now < window.end]

    assert fired(window, env_steps(*jumps)) == expected


@quickly
@given(cycles(None), jumps)
@example(Cycle(4, [1, 2]), [0, 1, 0, 1, 2, 0])
def test_a_cycle_fires_at_every_event_on_an_active_position(cycle: Cycle, jumps: list[int]) -> None:
    expected = [i for i, (_, now) in enumerate(readings_of(jumps)) if now % cycle.length + 1 in cycle.active]

    assert fired(cycle, env_steps(*jumps)) == expected


@quickly
@given(instants(None), instants(None) | windows(None) | cycles(None), jumps)
@example(Every(5), Window(7, 13), [12])
def test_an_intersection_fires_when_a_tick_of_both_was_passed(a: Leaf, b: Leaf, jumps: list[int]) -> None:
    common = {tick for tick in range(sum(jumps) + 1) if a.contains(tick) and b.contains(tick)}
    expected = [i for i, (before, now) in enumerate(readings_of(jumps)) if common & set(range(before + 1, now + 1))]

    assert fired(a & b, env_steps(*jumps)) == expected
    assert fired(b & a, env_steps(*jumps)) == expected


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("interval", "times"), [(0.1, 100), (0.3, 100), (0.7, 100), (2.3, 43)])
def test_a_fraction_of_a_second_is_an_interval_like_any_other(interval: float, times: int) -> None:
    hundred_seconds = [{"seconds": 1.0}] * 100

    assert len(fired(Every(interval, "seconds"), hundred_seconds)) == times


def test_a_window_of_epochs_holds_for_every_step_of_those_epochs() -> None:
    steps_of_an_epoch = [{"env_steps": 1}] * 3
    four_epochs = [*steps_of_an_epoch, *([{"env_steps": 1, "epochs": 1}, *steps_of_an_epoch[1:]] * 3)]

    assert fired(Window(1, 3, "epochs"), four_epochs) == [3, 4, 5, 6, 7, 8]


# Looking ahead


@quickly
@given(expressions(None), st.integers(-1, 80), st.integers(1, 60))
def test_nothing_is_due_before_the_tick_that_next_names(schedule: Schedule, since: int, jump: int) -> None:
    now = since + jump

    if schedule.is_due(now, since):
        assert schedule.next(since) <= now


@quickly
@given(st.lists(expressions(None, "env_steps"), min_size=1, max_size=3), jumps)
def test_the_gate_lets_through_what_asking_each_time_would(schedules: list[Schedule], jumps: list[int]) -> None:
    calls = Driver(schedules).drive(env_steps(*jumps)).fired

    assert calls == [judged_one_by_one(schedule, env_steps(*jumps)) for schedule in schedules]


@quickly
@given(st.lists(expressions("env_steps", "epochs"), min_size=1, max_size=3), moves)
@example([Every(3, "epochs") & Every(7, "env_steps")], [{"env_steps": 5, "epochs": 1}] * 12)
@example([Every(7, "env_steps") & Window(2, 4, "epochs")], [{"env_steps": 5, "epochs": 1}] * 12)
def test_the_gate_lets_through_the_same_on_two_counters(schedules: list[Schedule], moves: list[Move]) -> None:
    calls = Driver(schedules).drive(moves).fired

    assert calls == [judged_one_by_one(schedule, moves) for schedule in schedules]


@quickly
@given(st.lists(expressions("env_steps", "epochs", "seconds"), min_size=1, max_size=3), moves)
@example([Every(2, "env_steps") & Window(3, 9, "seconds")], [{"env_steps": 1, "seconds": 1.0}] * 12)
@example([Window(2, 9, "env_steps") & Cycle(2, [1], "seconds")], [{"env_steps": 1, "seconds": 0.25}] * 12)
def test_the_gate_lets_through_the_same_when_seconds_count(schedules: list[Schedule], moves: list[Move]) -> None:
    calls = Driver(schedules).drive(moves).fired

    assert calls == [judged_one_by_one(schedule, moves) for schedule in schedules]


def test_an_intersection_of_two_clocks_does_not_depend_on_which_is_written_first() -> None:
    every_10_epochs, every_1000_steps = Every(10, "epochs"), Every(1000, "env_steps")
    hundred_epochs = [{"epochs": 1, "env_steps": 30}] * 100

    one_way = fired(every_10_epochs & every_1000_steps, hundred_epochs, "epoch_end")
    the_other = fired(every_1000_steps & every_10_epochs, hundred_epochs, "epoch_end")

    assert one_way == the_other


def test_seconds_are_read_at_the_event_also_when_a_counter_is_waited_for() -> None:
    schedule = Every(1, "env_steps") & Window(60, INF, "seconds")

    assert fired(schedule, [{"env_steps": 1}, {"env_steps": 1, "seconds": 61}, {"env_steps": 1}]) == [1, 2]


# Resuming


@quickly
@given(st.lists(expressions("env_steps", "epochs", "seconds"), min_size=1, max_size=3), moves, st.data())
def test_a_resume_neither_repeats_nor_drops_a_firing(
    schedules: list[Schedule], moves: list[Move], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(moves)))
    whole = Driver(schedules).drive(moves)

    first = Driver(schedules).drive(moves[:cut])
    second = first.resumed(schedules).drive(moves[cut:])

    assert [early + late for early, late in zip(first.fired, second.fired, strict=True)] == whole.fired


# The gate of the seeds' BaseLoss


@dataclass(frozen=True)
class BaseLossGate:
    """The seeds' gate as they wrote it: epochs count from 0, positions from 1, both absolute."""

    begin_at_epoch: int = 0
    end_at_epoch: float = INF
    cycle_length: int | None = None
    active_in_cycle: tuple[int, ...] | None = None

    def is_open(self, epoch: int) -> bool:
        if not self.begin_at_epoch <= epoch < self.end_at_epoch:
            return False
        if self.cycle_length is None:
            return True
        if not self.active_in_cycle:
            return False
        return epoch % self.cycle_length + 1 in self.active_in_cycle


def active_sets(length: int) -> list[tuple[int, ...]]:
    positions = range(1, length + 1)
    if length <= 6:
        return [chosen for size in positions for chosen in combinations(positions, size)]
    random = Random(length)
    drawn = [tuple(sorted(random.sample(positions, random.randint(1, length)))) for _ in range(8)]
    return [(1,), (length,), tuple(positions), *drawn]


def spans() -> list[tuple[int, float]]:
    ends = (*range(1, 11), 25, 41, INF)
    return [(begin, end) for begin in range(10) for end in ends if begin < end]


@pytest.mark.parametrize("length", [None, *range(1, 13)])
def test_window_and_cycle_are_the_seeds_loss_gate(length: int | None) -> None:
    for begin, end in spans():
        for active in [None] if length is None else active_sets(length):
            gate = BaseLossGate(begin, end, length, active)
            window = Window(begin, end, "epochs")
            rule = Rule(window if length is None else window & Cycle(length, active or (), "epochs"), "epochs")

            due = [epoch for epoch in range(41) if rule.is_due({"epochs": epoch}, {"epochs": epoch - 1})]

            assert due == [epoch for epoch in range(41) if gate.is_open(epoch)], gate


@quickly
@given(
    st.integers(0, 8),
    st.integers(1, 12) | st.just(INF),
    cycles("epochs"),
    st.lists(st.integers(1, 4), min_size=1, max_size=15),
)
def test_the_loss_gate_is_open_for_every_minibatch_of_an_active_epoch(
    begin: int, length: float, cycle: Cycle, minibatches_per_epoch: list[int]
) -> None:
    gate = BaseLossGate(begin, begin + length, cycle.length, cycle.active)
    epochs = [epoch for epoch, count in enumerate(minibatches_per_epoch) for _ in range(count)]
    moves = [{"minibatches": 1, "epochs": now - before} for before, now in zip([0, *epochs], epochs, strict=False)]

    calls = fired(Window(begin, begin + length, "epochs") & cycle, moves, "minibatch_end")

    assert calls == [index for index, epoch in enumerate(epochs) if gate.is_open(epoch)]


# Sets

small_expressions = expressions(None, max_leaves=3)
more_quickly = settings(quickly, max_examples=60)


@more_quickly
@given(small_expressions, small_expressions)
def test_combinations_are_intersection_union_and_complement_of_sets(a: Schedule, b: Schedule) -> None:
    assert ticks_of(a & b) == ticks_of(a) & ticks_of(b)
    assert ticks_of(a | b) == ticks_of(a) | ticks_of(b)
    assert ticks_of(~a) == set(TICKS) - ticks_of(a)


@more_quickly
@given(small_expressions)
def test_a_double_negation_changes_nothing(schedule: Schedule) -> None:
    assert ticks_of(~~schedule) == ticks_of(schedule)


@more_quickly
@given(small_expressions, small_expressions)
def test_de_morgans_laws_hold(a: Schedule, b: Schedule) -> None:
    assert ticks_of(~(a & b)) == ticks_of(~a | ~b)
    assert ticks_of(~(a | b)) == ticks_of(~a & ~b)
