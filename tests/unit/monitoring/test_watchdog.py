"""The watchdog inside the process: deadlines, told by a manual clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookloop.cli.exit_codes import EXIT_HUNG
from hookloop.errors import RegistrationError
from hookloop.monitoring import Activity, Overdue, PhaseTrace, Watchdog
from hookloop.monitoring.watchdog import EXIT_CODE_HUNG
from hookloop.testing import ManualClock


class Bench:
    """A watchdog, what it looks at, and what it has done."""

    def __init__(self, path: Path, policy: str = "warn", **deadlines: float) -> None:
        self.clock = ManualClock()
        self.activities: list[Activity] = []
        self.stops: list[Overdue] = []
        self.exits: list[int] = []
        self.log = path / "logs" / "stacks.log"
        self.dog = Watchdog(
            deadlines,
            lambda: self.activities,
            policy=policy,  # type: ignore[arg-type]
            stop=self.stops.append,
            log_file=self.log,
            time_ns=self.clock,
            exit_process=self.exits.append,
        )

    def look(self, *activities: Activity, after: float = 0.0) -> list[str]:
        """Let time pass, look, and return what is overdue so far."""
        self.activities = list(activities)
        self.clock.advance(after)
        self.dog.check()
        return [late.activity.name for late in self.dog.overdue]


def call(number: int, name: str = "hook 'save'", kinds: tuple[str, ...] = ("hook:save", "save", "hook")) -> Activity:
    return Activity(name, kinds, number)


def test_a_call_that_lasts_is_reported_once_and_with_all_stacks(tmp_path: Path) -> None:
    bench = Bench(tmp_path, hook=10.0)

    assert bench.look(call(1)) == []
    assert bench.look(call(1), after=9.9) == []
    assert bench.look(call(1), after=0.2) == ["hook 'save'"]
    assert bench.look(call(1), after=100) == ["hook 'save'"]
    written = bench.log.read_text()
    assert "hook 'save' has taken 10.1 s; the deadline of 'hook' is 10 s; policy: warn" in written
    assert "test_a_call_that_lasts_is_reported_once_and_with_all_stacks" in written
    assert written.count("===") == 1


def test_many_short_calls_are_not_one_long_call(tmp_path: Path) -> None:
    bench = Bench(tmp_path, hook=10.0)

    for number in range(100):
        assert bench.look(call(number), after=5.0) == []


def test_a_call_that_was_seen_to_end_begins_anew(tmp_path: Path) -> None:
    bench = Bench(tmp_path, hook=10.0)
    bench.look(call(1))
    bench.look(after=6.0)

    assert bench.look(call(1), after=6.0) == []


def test_the_nearest_deadline_that_is_set_applies(tmp_path: Path) -> None:
    bench = Bench(tmp_path, hook=10.0, save=100.0)
    bench.look(call(1))

    assert bench.look(call(1), after=50.0) == []
    assert bench.look(call(1), after=51.0) == ["hook 'save'"]
    assert bench.dog.overdue[0].kind == "save"


def test_what_has_no_deadline_may_last_for_ever(tmp_path: Path) -> None:
    bench = Bench(tmp_path, train=10.0)
    bench.look(call(1))

    assert bench.look(call(1), after=1e6) == []


def test_phases_are_measured_from_when_they_began_the_outer_ones_too(tmp_path: Path) -> None:
    bench = Bench(tmp_path, epoch=20.0, rollout=5.0)
    trace = PhaseTrace(bench.clock)
    trace.reset("epoch")
    bench.clock.advance(17.0)
    trace.enter("rollout")

    def look(after: float) -> list[str]:
        return bench.look(
            *(Activity(each.name, (each.name,), each.number, each.since_ns) for each in trace.stack), after=after
        )

    assert look(after=1.0) == []
    assert look(after=2.5) == ["epoch"]
    assert look(after=2.0) == ["epoch", "rollout"]


def test_stop_asks_the_run_to_stop(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "stop", hook=1.0)
    bench.look(call(1))
    bench.look(call(1), after=2.0)

    assert [late.kind for late in bench.stops] == ["hook"]
    assert bench.exits == []


def test_abort_exits_with_70(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "abort", hook=1.0)
    bench.look(call(1))
    bench.look(call(1), after=2.0)

    assert bench.exits == [EXIT_HUNG] == [EXIT_CODE_HUNG]


def test_a_log_that_cannot_be_written_does_not_hold_the_policy_up(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file where a folder should be")
    bench = Bench(tmp_path, "abort", hook=1.0)
    bench.look(call(1))
    bench.look(call(1), after=2.0)

    assert bench.exits == [EXIT_HUNG]


@pytest.mark.parametrize(("policy", "seconds"), [("shrug", 1.0), ("warn", 0.0), ("warn", float("inf"))])
def test_senseless_settings_are_refused(tmp_path: Path, policy: str, seconds: float) -> None:
    with pytest.raises(RegistrationError, match="got"):
        Bench(tmp_path, policy, hook=seconds)


def test_a_trace_leaves_what_is_inside_and_ignores_what_does_not_run() -> None:
    trace = PhaseTrace(ManualClock())
    trace.reset("epoch")
    trace.enter("rollout")
    trace.enter("evaluation")
    assert trace.path == "epoch/rollout/evaluation"

    trace.leave("rollout")
    trace.leave("train")

    assert trace.path == "epoch"
    assert PhaseTrace().path == ""
