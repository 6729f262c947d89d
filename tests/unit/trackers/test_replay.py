from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hookloop.trackers import Replay
from tests.unit.trackers.parts import ListSource, ListTracker, expected


def caught_up(replay: Replay, tries: int = 200) -> None:
    for _ in range(tries):
        replay.advance()
        if replay.is_caught_up:
            return
    raise AssertionError("the tracker never caught up")


def test_a_tracker_is_told_everything_in_order_and_the_cursor_is_saved() -> None:
    source, tracker = ListSource(5), ListTracker()
    replay = Replay(tracker, source, batch_rows=4)

    caught_up(replay)

    assert tracker.held == expected(5)
    assert source.saved == [0, 2, 4, 5]
    assert (replay.rows_sent, replay.first_epoch, replay.last_epoch) == (10, 1, 5)


def test_a_tracker_that_cannot_tell_goes_on_from_the_saved_cursor() -> None:
    tracker = ListTracker(tells=False)

    caught_up(Replay(tracker, ListSource(5, saved=3)))

    assert tracker.held == expected(5)[6:]


def test_a_tracker_that_is_ahead_of_the_run_is_told_nothing_until_the_run_has_come_that_far() -> None:
    source, tracker = ListSource(3), ListTracker()
    tracker.held, tracker.cursor = expected(5), 5  # the run was resumed from its third epoch
    replay = Replay(tracker, source)

    caught_up(replay)
    source.add(4, 5, 6)
    caught_up(replay)

    assert tracker.held == expected(6)


def test_what_arrived_before_the_answer_was_lost_is_not_sent_again() -> None:
    tracker = ListTracker()
    tracker.after = [ConnectionResetError("no answer")]
    replay = Replay(tracker, ListSource(3))

    assert not replay.advance()
    assert isinstance(replay.error, ConnectionResetError)
    caught_up(replay)

    assert tracker.held == expected(3)
    assert tracker.calls == ["open", "log", "close", "open"]


def test_a_cursor_that_could_not_be_saved_is_saved_later() -> None:
    source, tracker = ListSource(2), ListTracker(tells=False)
    source.failures = 1
    replay = Replay(tracker, source)

    caught_up(replay)

    assert tracker.held == expected(2)
    assert source.saved == [0, 2]


def test_closing_lets_go_of_everything_although_the_tracker_raises() -> None:
    class Unwilling(ListTracker):
        def close(self) -> None:
            raise RuntimeError("never")

    source = ListSource(1)
    replay = Replay(Unwilling(), source)
    caught_up(replay)

    replay.close()

    assert source.is_closed


@given(st.lists(st.sampled_from(["add", "fail before", "fail after", "full disk", "restart", "step"]), max_size=40))
def test_every_point_is_held_once_and_in_order_whatever_fails(happenings: list[str]) -> None:
    source, tracker, last = ListSource(1), ListTracker(), 1
    replay = Replay(tracker, source, batch_rows=4)
    for happening in happenings:
        if happening == "add":
            last += 1
            source.add(last)
        elif happening == "fail before":
            tracker.before.append(TimeoutError("slow"))
        elif happening == "fail after":
            tracker.after.append(TimeoutError("slow"))
        elif happening == "full disk":
            source.failures += 1
        elif happening == "restart":
            replay = Replay(tracker, source, batch_rows=4)
        else:
            replay.advance()

    caught_up(replay)

    assert tracker.held == expected(last)
    assert source.saved[-1] <= last
