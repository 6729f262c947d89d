"""The stopwatch: timers that nest, laps, rates, and times that go on after a resume."""

from __future__ import annotations

import json

import pytest

from hookloop.errors import HookStateError
from hookloop.monitoring import Stopwatch
from hookloop.testing import ManualClock


def epoch(watch: Stopwatch, clock: ManualClock, *, rollout: float = 3.0, train: float = 1.0) -> None:
    with watch.timer("epoch"):
        with watch.timer("rollout"):
            clock.advance(rollout)
        with watch.timer("train"):
            clock.advance(train)
        clock.advance(1.0)


def test_nested_timers_are_named_after_those_around_them() -> None:
    clock = ManualClock()
    watch = Stopwatch(clock)

    epoch(watch, clock)

    assert watch.names == ("epoch", "epoch/rollout", "epoch/train")
    assert [watch.seconds(name) for name in watch.names] == [5.0, 3.0, 1.0]
    assert watch.seconds("never started") == 0.0


def test_shares_are_parts_of_the_timer_around_them() -> None:
    clock = ManualClock()
    watch = Stopwatch(clock)

    epoch(watch, clock)

    assert watch.shares("epoch") == {"rollout": 0.6, "train": 0.2}
    assert watch.shares("never started") == {}


def test_a_lap_is_what_was_measured_since_the_last_one_running_timers_included() -> None:
    clock = ManualClock()
    watch = Stopwatch(clock)
    epoch(watch, clock)
    watch.lap()
    epoch(watch, clock, rollout=7.0)
    watch.start("epoch")
    clock.advance(0.5)

    assert watch.lap() == {"epoch": 9.5, "epoch/rollout": 7.0, "epoch/train": 1.0}
    assert watch.laps("epoch") == 2
    assert watch.lap() == {"epoch": 0.0, "epoch/rollout": 0.0, "epoch/train": 0.0}


def test_an_error_inside_a_block_stops_its_timer() -> None:
    clock = ManualClock()
    watch = Stopwatch(clock)

    def fail() -> None:
        with watch.timer("outer"), watch.timer("inner"):
            clock.advance(2.0)
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fail()
    clock.advance(10.0)

    assert watch.seconds("outer") == watch.seconds("outer/inner") == 2.0


def test_stopping_a_timer_stops_those_inside_it_and_one_that_does_not_run_is_no_error() -> None:
    clock = ManualClock()
    watch = Stopwatch(clock)
    watch.start("outer")
    watch.start("inner")
    watch.stop("outer")
    watch.stop("outer")

    clock.advance(1.0)

    assert watch.start("next") == "next"
    assert watch.seconds("outer/inner") == 0.0


def test_there_is_no_rate_before_time_has_passed() -> None:
    clock = ManualClock()
    watch = Stopwatch(clock)

    assert watch.rate("epoch", 100) is None
    assert watch.eta_seconds("epoch", 100, 1000) is None
    epoch(watch, clock)
    assert watch.rate("epoch", 100) == 20.0
    assert watch.eta_seconds("epoch", 100, 1000) == 45.0


def test_after_a_resume_the_rate_is_over_all_attempts_and_the_gap_between_them_does_not_count() -> None:
    clock = ManualClock()
    watch = Stopwatch(clock)
    epoch(watch, clock)  # 100 steps in 5 s
    saved = json.loads(json.dumps(watch.state_dict()))
    epoch(watch, clock)  # lost: the process was killed before it saved again

    clock = ManualClock()
    clock.advance(1e6)
    resumed = Stopwatch(clock)
    resumed.load_state_dict(saved)
    epoch(resumed, clock, rollout=8.0)  # another 100 steps, on a slower machine, in 10 s

    assert resumed.seconds("epoch") == 15.0
    assert resumed.attempt_seconds("epoch") == 10.0
    assert resumed.rate("epoch", 200) == 200 / 15
    assert resumed.eta_seconds("epoch", 200, 400, done_before=100) == 20.0


def test_a_timer_that_runs_while_it_is_saved_is_saved_up_to_that_moment() -> None:
    clock = ManualClock()
    watch = Stopwatch(clock)
    watch.start("epoch")
    clock.advance(4.0)
    resumed = Stopwatch(ManualClock())

    resumed.load_state_dict(watch.state_dict())

    assert resumed.seconds("epoch") == 4.0


def test_going_back_in_the_middle_of_a_run_measures_on_from_the_saved_times() -> None:
    clock = ManualClock()
    watch = Stopwatch(clock)
    watch.start("epoch")
    clock.advance(4.0)
    saved = watch.state_dict()
    clock.advance(100.0)

    watch.load_state_dict(saved)
    clock.advance(1.0)

    assert watch.seconds("epoch") == 5.0


def test_another_version_is_refused() -> None:
    with pytest.raises(HookStateError, match="version 9"):
        Stopwatch().load_state_dict({"version": 9, "timers": {}})
