from __future__ import annotations

import logging
import threading

import pytest

from hookloop.testing import ManualClock
from hookloop.trackers import Replay, TrackerFeed
from tests.unit.trackers.parts import ListSource, ListTracker, expected


def feed_of(
    tracker: ListTracker, source: ListSource, clock: ManualClock | None = None, **options: float
) -> TrackerFeed:
    return TrackerFeed(
        "list", Replay(tracker, source), time_ns=clock or ManualClock(), **{"interval_seconds": 1.0, **options}
    )


def test_nothing_is_opened_or_read_before_the_first_epoch() -> None:
    tracker = ListTracker()
    feed = feed_of(tracker, ListSource(3))

    assert feed.turn() is None
    assert tracker.calls == []


def test_an_epoch_that_is_not_in_the_statistics_yet_is_looked_for_again_after_the_interval() -> None:
    source, tracker, clock = ListSource(), ListTracker(), ManualClock()
    feed = feed_of(tracker, source, clock)
    feed.wake(1)

    assert feed.turn() == 1.0
    source.add(1)
    assert feed.turn() == 1.0  # not due
    clock.advance(1.0)
    assert feed.turn() == 0.0

    assert tracker.held == expected(1)
    assert feed.turn() is None


def test_pauses_grow_while_a_tracker_fails_and_end_with_its_success() -> None:
    source, tracker, clock = ListSource(1), ListTracker(), ManualClock()
    tracker.before = [ConnectionRefusedError("nobody there") for _ in range(9)]
    feed = feed_of(tracker, source, clock)
    feed.wake(1)
    pauses: list[float] = []
    while tracker.before:
        pauses.append(feed.turn() or 0.0)
        health = feed.health()
        clock.advance(pauses[-1])

    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert (health.state, health.failures, health.epochs_behind) == ("failing", 9, 1)
    assert health.last_error == "ConnectionRefusedError: nobody there"
    assert feed.turn() == 0.0
    health = feed.health()
    assert (health.state, health.failures, health.epochs_behind, health.last_error) == ("ok", 0, 0, "")
    assert health.rows_sent == 2


def test_a_failing_tracker_is_in_the_log_once(caplog: pytest.LogCaptureFixture) -> None:
    tracker, clock = ListTracker(), ManualClock()
    tracker.before = [ConnectionRefusedError("nobody there") for _ in range(5)]
    feed = feed_of(tracker, ListSource(1), clock)
    feed.wake(1)

    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            clock.advance(feed.turn() or 0.0)

    assert [record.getMessage() for record in caplog.records] == [
        "The tracker list fails, and training goes on; it is tried again: ConnectionRefusedError('nobody there')"
    ]


def test_a_tracker_that_lacks_epochs_for_long_is_behind() -> None:
    source, clock = ListSource(), ManualClock()
    feed = feed_of(ListTracker(), source, clock)
    feed.wake(4)

    assert feed.health().state == "ok"
    clock.advance(31)

    assert (feed.health().state, feed.health().epochs_behind) == ("behind", 4)


class Hanging(ListTracker):
    def __init__(self) -> None:
        super().__init__()
        self.is_in = threading.Event()
        self.may_go = threading.Event()

    def log(self, epochs: object) -> None:
        self.is_in.set()
        self.may_go.wait(60)


def test_a_call_that_does_not_return_is_called_hung_and_is_left_behind(caplog: pytest.LogCaptureFixture) -> None:
    tracker, clock = Hanging(), ManualClock()
    feed = feed_of(tracker, ListSource(2), clock, interval_seconds=1e-6)
    feed.start()
    feed.wake(2)
    while not tracker.is_in.wait(0.01):
        clock.advance(1)
    clock.advance(31)

    assert feed.health().state == "hung"
    feed.end("completed")
    with caplog.at_level(logging.WARNING):
        assert not feed.join(0.05)
    assert "lacks 2 epochs at the end (it does not answer); 'hookloop sync' sends them" in caplog.text
    tracker.may_go.set()


def test_at_the_end_everything_is_sent_and_the_outcome_told() -> None:
    source, tracker = ListSource(3), ListTracker()
    feed = TrackerFeed("list", Replay(tracker, source))
    feed.start()
    feed.wake(3)
    source.status = "stopped"
    feed.end("stopped")

    assert feed.join(60)
    assert tracker.held == expected(3)
    assert tracker.calls[-2:] == ["finish stopped", "close"]
    assert (feed.health().state, source.is_closed) == ("ended", True)


def test_a_tracker_that_comes_back_at_the_end_gets_everything() -> None:
    source, tracker = ListSource(3), ListTracker()
    tracker.before = [ConnectionRefusedError("nobody there")] * 2
    source.status = "completed"
    feed = TrackerFeed("list", Replay(tracker, source))
    feed.start()
    feed.end("completed")

    assert feed.join(60)
    assert tracker.held == expected(3)


def test_somebody_who_uses_the_tracker_can_stop_the_run_and_is_asked_rarely() -> None:
    source, tracker, clock = ListSource(), ListTracker(), ManualClock()
    tracker.reason = "enough"
    feed = feed_of(tracker, source, clock)
    for epoch in range(1, 8):
        source.add(epoch)
        feed.wake(epoch)
        clock.advance(1)
        feed.turn()
    assert (tracker.calls.count("stop_reason"), feed.stop_reason) == (0, None)  # 5 epochs, but no minute
    clock.advance(60)
    source.add(8)
    feed.wake(8)
    feed.turn()

    assert (tracker.calls.count("stop_reason"), feed.stop_reason) == (1, "enough")
    clock.advance(120)
    source.add(9)
    feed.wake(9)
    feed.turn()
    assert tracker.calls.count("stop_reason") == 1  # a minute, but not 5 epochs


def test_a_wake_costs_next_to_nothing_and_waits_for_nobody() -> None:
    feed = feed_of(Hanging(), ListSource(1))

    for epoch in range(100_000):
        feed.wake(epoch)

    assert feed.health().epochs_behind == 99_999
