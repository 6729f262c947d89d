"""Who gets which task, and when a task is given up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hookloop.pools.assignments import MOST_PER_WORKER, Assignments, Failure, failed_error, is_hopeless
from hookloop.pools.protocol import Task, TaskKey

ENDED = Failure("its worker was ended by SIGKILL")


def with_tasks(count: int) -> Assignments:
    assignments = Assignments()
    for slot in range(count):
        assignments.add(Task(TaskKey(slot, 0), {"seed": slot}), None)
    return assignments


def handed(assignments: Assignments, *workers: int) -> list[tuple[int, int]]:
    return [(worker, job.serial) for worker, job in assignments.hand_out(workers)]


def test_tasks_go_to_the_workers_that_have_the_fewest() -> None:
    assert handed(with_tasks(4), 0, 1) == [(0, 0), (1, 1), (0, 2), (1, 3)]


def test_the_last_task_waits_for_the_worker_that_is_free_first() -> None:
    assignments = with_tasks(3)
    assert handed(assignments, 0, 1) == [(0, 0), (1, 1)]
    assignments.answered(1, 1)
    assert handed(assignments, 0, 1) == [(1, 2)]


def test_the_task_a_worker_had_begun_is_blamed_and_the_one_behind_it_is_not() -> None:
    assignments = with_tasks(2)
    handed(assignments, 0)
    for worker in (0, 1, 2):
        handed(assignments, worker)
        given_up = assignments.lost(worker, 0, ENDED)
    assert given_up is not None
    assert given_up.task.key == (0, 0)
    assert assignments.quarantined == [(0, 0)]
    assert (assignments.unanswered, assignments.waiting) == (1, 1)
    assert handed(assignments, 3) == [(3, 1)]


def test_a_task_that_was_lost_comes_first() -> None:
    assignments = with_tasks(4)
    handed(assignments, 0)
    assignments.lost(0, 0, ENDED)
    assert handed(assignments, 1) == [(1, 0), (1, 1)]


def test_of_a_task_and_its_copy_one_result_is_taken() -> None:
    assignments = with_tasks(1)
    handed(assignments, 0)
    assert assignments.copy(0, 1) is not None
    assert assignments.copy(0, 2) is None
    assert assignments.answered(1, 0) is not None
    assert assignments.unanswered == 0
    assert assignments.answered(0, 0) is None


def test_a_worker_that_ends_beside_a_copy_of_its_task_costs_nothing() -> None:
    assignments = with_tasks(1)
    handed(assignments, 0)
    assignments.copy(0, 1)
    assignments.lost(0, 0, ENDED)
    assert assignments.waiting == 0
    assert assignments.answered(1, 0) is not None


def test_the_same_exception_twice_is_enough_and_different_endings_need_three() -> None:
    raised, other = Failure("ValueError: 1", "trace"), Failure("ValueError: 2", "trace")
    assert not is_hopeless([raised])
    assert is_hopeless([raised, raised])
    assert not is_hopeless([raised, other])
    assert is_hopeless([raised, other, ENDED])
    assert not is_hopeless([ENDED, ENDED])


def test_the_error_names_the_task_its_payload_and_every_reason_once() -> None:
    assignments = with_tasks(1)
    for worker in range(3):
        handed(assignments, worker)
        job = assignments.lost(worker, 0, ENDED if worker else Failure("ValueError: 1", "the trace"))
    assert job is not None
    assert str(failed_error(job)) == (
        "The task of slot 0 in iteration 0 was given up after 3 workers "
        "(ValueError: 1; its worker was ended by SIGKILL). "
        "Its payload, which is all one needs to compute it again: {'seed': 0}"
    )


@given(
    st.integers(1, 12),
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["answer", "lose", "lose idle", "copy"])), max_size=200),
)
def test_every_task_is_answered_or_given_up_once_whatever_happens(count: int, events: list[tuple[int, str]]) -> None:
    assignments = with_tasks(count)
    held: dict[int, list[int]] = {0: [], 1: [], 2: []}
    settled: list[int] = []

    def hand_out() -> None:
        for worker, job in assignments.hand_out(held):
            held[worker].append(job.serial)
        assert all(len(serials) <= MOST_PER_WORKER for serials in held.values())

    hand_out()
    endings = [*events, *((worker, "answer") for _ in range(4 * count) for worker in held)]
    for worker, event in endings:
        if event.startswith("lose"):
            serial = held[worker][0] if held[worker] and event == "lose" else -1
            held[worker] = []
            given_up = assignments.lost(worker, serial, ENDED)
            settled += [given_up.serial] if given_up else []
        elif event == "answer" and held[worker]:
            job = assignments.answered(worker, held[worker].pop(0))
            settled += [job.serial] if job else []
        elif event == "copy" and not held[worker]:
            for serial in sorted({serial for serials in held.values() for serial in serials}):
                if assignments.copy(serial, worker):
                    held[worker].append(serial)
                    break
        hand_out()

    assert sorted(settled) == list(range(count))
    assert assignments.unanswered == assignments.waiting == 0
