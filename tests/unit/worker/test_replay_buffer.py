from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookloop.core.plain import require_plain
from hookloop.errors import HookStateError
from hookloop.testing import ManualClock
from hookloop.worker import ReplayBuffer, ReplayBufferConfig, Rollout

LESSONS = ("copy", "reverse", "sort")


def rollout(lesson: str | None = "copy", version: int = 0, reward: float = 1.0, **more: Any) -> Rollout:
    return Rollout(lesson, reward, 1, version, {"tokens": np.array([version])}, **more)


def numbered(count: int, lesson: str = "copy", **more: Any) -> list[Rollout]:
    return [rollout(lesson, reward=float(number), **more) for number in range(1, count + 1)]


def buffer(**config: Any) -> ReplayBuffer:
    clock = config.pop("clock", ManualClock())
    return ReplayBuffer(ReplayBufferConfig(**config), seed=config.pop("seed", 0), wall_time=lambda: clock() / 1e9)


def test_each_lesson_keeps_its_newest_rollouts_and_the_oldest_give_way() -> None:
    kept = buffer(capacity=3)

    kept.add([*numbered(5), *numbered(2, "sort")])

    assert kept.sizes == {"copy": 3, "sort": 2}
    assert kept.lost["capacity"] == 2
    drawn = kept.sample(5)
    assert drawn is not None
    assert sorted(each.reward for each in drawn if each.lesson == "copy") == [3.0, 4.0, 5.0]


def test_a_sample_is_whole_or_nothing_is_drawn() -> None:
    kept = buffer(max_samples=1)
    kept.add(numbered(3))

    assert kept.sample(4) is None
    drawn = kept.sample(3)

    assert drawn is not None
    assert len({each.reward for each in drawn}) == 3
    with pytest.raises(ValueError, match="at least 1 rollout, got 0"):
        kept.sample(0)


def test_newer_rollouts_are_drawn_in_proportion_to_their_rank_to_the_power_of_alpha() -> None:
    kept = buffer(recency_alpha=2.0)
    kept.add(numbered(3))

    draws = Counter(each.reward for _ in range(7000) for each in kept.sample(1) or [])

    assert [round(draws[float(rank)] / 500, 1) for rank in (1, 2, 3)] == pytest.approx([1.0, 4.0, 9.0], rel=0.12)


def test_with_alpha_0_all_are_alike() -> None:
    kept = buffer(recency_alpha=0.0)
    kept.add(numbered(2))

    draws = Counter(each.reward for _ in range(2000) for each in kept.sample(1) or [])

    assert draws[1.0] == pytest.approx(1000, abs=100)


def test_a_rollout_retires_after_so_many_samples() -> None:
    kept = buffer(max_samples=2)
    kept.add(numbered(2))

    assert [len(kept.sample(2) or []) for _ in range(3)] == [2, 2, 0]
    assert (kept.lost["retired"], len(kept)) == (2, 0)


def test_weights_that_lag_too_far_behind_make_a_rollout_stale_on_arrival_and_later() -> None:
    kept = buffer(max_age_steps=2)
    kept.begin_step(5)

    assert kept.add([rollout(version=version) for version in (2, 3, 4, 5)]) == 3
    kept.begin_step(6)

    assert len(kept) == 2
    assert kept.lost["stale_steps"] == 2


def test_a_rollout_becomes_stale_with_time() -> None:
    clock = ManualClock()
    kept = buffer(max_age_seconds=10.0, clock=clock)
    clock.advance(100)
    kept.add([rollout(created_seconds=created) for created in (89.0, 90.0, 95.0)])
    assert (len(kept), kept.lost["stale_seconds"]) == (2, 1)

    clock.advance(5)

    assert kept.sample(2) is None
    assert (len(kept), kept.lost["stale_seconds"]) == (1, 2)


def test_rollouts_of_a_future_that_was_given_up_are_refused_and_let_go() -> None:
    kept = buffer()
    kept.begin_step(8)
    kept.add([rollout(version=version) for version in (4, 6, 8, 9)])
    assert kept.lost["future"] == 1

    kept.begin_step(5)  # the trainer went back to an older checkpoint

    assert (len(kept), kept.lost["future"]) == (1, 3)


def test_groups_that_earned_the_same_throughout_are_refused_if_asked_to() -> None:
    arrived = [
        *[rollout(reward=1.0, group="a") for _ in range(3)],
        *[rollout(reward=float(number), group="b") for number in range(3)],
        *[rollout(reward=1.0) for _ in range(2)],
        rollout("sort", reward=0.0, group="a"),
        rollout("sort", reward=2.0, group="a"),
    ]
    strict, lax = buffer(drop_zero_variance_groups=True), buffer()

    assert (strict.add(arrived), lax.add(arrived)) == (7, 10)
    assert strict.lost["zero_variance"] == 3


def test_a_reward_that_is_not_finite_is_refused() -> None:
    kept = buffer()

    assert kept.add([rollout(reward=float("nan")), rollout(reward=float("inf")), rollout()]) == 1
    assert kept.lost["not_finite"] == 2


def test_what_was_lost_is_among_the_metrics_by_its_reason() -> None:
    kept = buffer(capacity=1)
    kept.add([rollout(version=3), *numbered(2)])

    assert kept.metrics() == {
        "replay/size": 1.0,
        "replay/taken": 2.0,
        "replay/lost/future": 1.0,
        "replay/lost/stale_steps": 0.0,
        "replay/lost/stale_seconds": 0.0,
        "replay/lost/zero_variance": 0.0,
        "replay/lost/not_finite": 0.0,
        "replay/lost/capacity": 1.0,
        "replay/lost/retired": 0.0,
    }


def test_a_saved_buffer_of_another_version_is_refused() -> None:
    with pytest.raises(HookStateError, match="has version 99"):
        buffer().load_state_dict({"state_version": 99})


arrivals = st.lists(
    st.builds(
        rollout,
        lesson=st.sampled_from([*LESSONS, None]),
        version=st.integers(0, 6),
        reward=st.sampled_from([0.0, 1.0, 2.0]),
        group=st.sampled_from([None, "a", "b"]),
        created_seconds=st.floats(0, 20),
    ),
    max_size=12,
)
moves = st.one_of(
    st.tuples(st.just("add"), arrivals),
    st.tuples(st.just("begin_step"), st.integers(0, 6)),
    st.tuples(st.just("sample"), st.integers(1, 8)),
    st.tuples(st.just("wait"), st.floats(0, 5)),
)
configs = st.fixed_dictionaries(
    {
        "capacity": st.integers(1, 6),
        "recency_alpha": st.sampled_from([0.0, 0.5, 1.0, 3.0]),
        "max_samples": st.one_of(st.none(), st.integers(1, 3)),
        "max_age_steps": st.one_of(st.none(), st.integers(0, 3)),
        "max_age_seconds": st.one_of(st.none(), st.floats(0.1, 10)),
        "drop_zero_variance_groups": st.booleans(),
    }
)


def act(kept: ReplayBuffer, clock: ManualClock, move: tuple[str, Any]) -> list[Any] | None:
    kind, what = move
    if kind == "wait":
        clock.advance(what)
        return None
    return getattr(kept, kind)(what)


@given(configs, st.lists(moves, max_size=25))
@settings(max_examples=60, deadline=None)
def test_whatever_comes_every_rollout_is_kept_or_counted_and_every_sample_is_fresh_and_balanced(
    config: dict[str, Any], played: list[tuple[str, Any]]
) -> None:
    clock = ManualClock()
    kept, arrived = buffer(clock=clock, **config), 0
    for move in played:
        drawn = act(kept, clock, move)
        arrived += len(move[1]) if move[0] == "add" else 0
        assert len(kept) + sum(kept.lost.values()) == arrived
        assert all(size <= config["capacity"] for size in kept.sizes.values())
        if isinstance(drawn, list):
            assert len(drawn) == move[1]
            assert len({id(each) for each in drawn}) == len(drawn)
            for each in drawn:
                assert each.weight_version <= kept.version
                lag, age = kept.version - each.weight_version, clock() / 1e9 - each.created_seconds
                assert config["max_age_steps"] is None or lag <= config["max_age_steps"]
                assert config["max_age_seconds"] is None or age <= config["max_age_seconds"]


@given(st.dictionaries(st.sampled_from(LESSONS), st.integers(1, 8), min_size=1), st.integers(1, 24), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_lessons_give_alike_as_far_as_they_have_rollouts(there: dict[str, int], count: int, seed: int) -> None:
    kept = ReplayBuffer(seed=seed)
    for lesson, number in there.items():
        kept.add(numbered(number, lesson))

    drawn = kept.sample(count)

    assert (drawn is None) == (count > sum(there.values()))
    given_by = Counter(each.lesson for each in drawn or [])
    for lesson, number in there.items():
        others = [given_by[other] for other in there if other != lesson]
        if given_by[lesson] < number:  # it had more to give
            assert all(other <= given_by[lesson] + 1 for other in others)


@given(configs, st.lists(moves, max_size=12), st.lists(moves, max_size=12))
@settings(max_examples=40, deadline=None)
def test_a_restored_buffer_goes_on_with_the_same_draws(
    config: dict[str, Any], before: list[tuple[str, Any]], after: list[tuple[str, Any]]
) -> None:
    clock, second_clock = ManualClock(), ManualClock()
    first = buffer(clock=clock, **config)
    for move in before:
        act(first, clock, move)
    saved = first.state_dict()
    require_plain(saved, "buffer")
    second_clock.advance(clock() / 1e9)
    second = buffer(clock=second_clock, **config)
    second.load_state_dict(saved)

    for move in after:
        drawn, again = act(first, clock, move), act(second, second_clock, move)
        assert _plain(drawn) == _plain(again)
    assert second.metrics() == first.metrics()


def _plain(drawn: Any) -> Any:
    return [(each.lesson, each.reward, each.weight_version) for each in drawn] if isinstance(drawn, list) else drawn
