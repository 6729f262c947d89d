"""Environments of several lessons behind one face."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookloop.errors import UnknownNameError
from hookloop.rl.envs import (
    EnvMismatchError,
    Envs,
    EnvStateError,
    LessonEnvs,
    NormalizedObservations,
    NormalizedRewards,
    make_envs,
)

LENGTHS = {"short": 5, "long": 30, "other": 9}


def lengths(max_episode_steps: int, mode: str = "sync") -> Any:
    return partial(make_envs, "CartPole-v1", mode=mode, kwargs={"max_episode_steps": max_episode_steps})


def lesson_envs(num_envs: int = 6, slots: int = 3) -> LessonEnvs:
    envs = LessonEnvs({name: lengths(steps) for name, steps in LENGTHS.items()}, num_envs=num_envs, slots=slots)
    envs.reset(3)
    return envs


def swing(envs: Envs, steps: int, begin: int = 0) -> list[Any]:
    """Act left and right in turn, which ends few episodes early, and return what was seen."""
    seen = []
    for step in range(begin, begin + steps):
        envs.step(np.full(envs.num_envs, step % 2))
        seen.append(
            (np.copy(envs.obs), envs.rewards.copy(), envs.terminated.copy(), envs.truncated.copy(), envs.finished)
        )
    return seen


def assert_same(ours: list[Any], theirs: list[Any]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one[:4], other[:4], strict=True))
        assert one[4] == other[4]


def test_each_slot_plays_its_own_lesson() -> None:
    envs = lesson_envs()
    envs.assign(["short", "long", "other"])

    lengths_seen: dict[int, set[int]] = {}
    for *_, finished in swing(envs, 60):
        for episode in finished:
            lengths_seen.setdefault(episode.env_index // 2, set()).add(episode.length)

    assert lengths_seen[0] == {5}
    assert lengths_seen[2] == {9}
    assert max(lengths_seen[1]) > 9


def test_the_returns_of_finished_episodes_are_told_by_lesson_and_once() -> None:
    envs = lesson_envs()
    envs.assign(["short", "short", "other"])
    swing(envs, 20)

    assert envs.drain_played() == {"short": [5.0] * 16, "other": [9.0] * 4}
    assert envs.drain_played() == {}


def test_one_lesson_in_one_slot_is_the_environment_itself() -> None:
    alone = LessonEnvs({"only": lengths(30)}, num_envs=4, slots=1)
    alone.reset(3)
    plain = make_envs("CartPole-v1", 4, mode="sync", kwargs={"max_episode_steps": 30})
    plain.reset(alone._seed_of(0, "only"))

    assert_same(swing(alone, 100), swing(plain, 100))


def test_episodes_rest_where_they_were_left_and_go_on() -> None:
    left, stayed = lesson_envs(), lesson_envs()
    for envs in (left, stayed):
        envs.assign(["long"] * 3)
        swing(envs, 7)

    (move,) = left.assign(["long", "short", "long"])
    assert (move.rows, move.left, move.entered) == (slice(2, 4), "long", "short")
    swing(left, 11)
    left.assign(["long"] * 3)

    assert np.array_equal(left.obs[2:4], stayed.obs[2:4])
    assert left.episode_lengths[2:4].tolist() == [7, 7]
    left.assign(["other", "long", "other"])
    stayed.assign(["other", "long", "other"])
    assert [seen[0][2:4].tolist() for seen in swing(left, 40, 7)] == [
        seen[0][2:4].tolist() for seen in swing(stayed, 40, 7)
    ]


plans = st.lists(st.lists(st.sampled_from(list(LENGTHS)), min_size=3, max_size=3), min_size=1, max_size=4)


@settings(max_examples=15, deadline=None)
@given(plans, plans)
def test_a_saved_state_goes_on_with_the_same_bits_resting_episodes_included(before: Any, after: Any) -> None:
    whole, resumed = lesson_envs(), lesson_envs()
    for plan in before:
        whole.assign(plan)
        swing(whole, 7)

    swing(resumed, 3)
    resumed.load_state_dict(whole.state_dict())

    assert np.array_equal(resumed.obs, whole.obs)
    assert np.array_equal(resumed.episode_lengths, whole.episode_lengths)
    for plan in after:
        assert resumed.assign(plan) == whole.assign(plan)
        assert_same(swing(resumed, 7), swing(whole, 7))
    assert resumed.drain_played() == whole.drain_played()


@pytest.mark.parametrize("wrap", [NormalizedObservations, partial(NormalizedRewards, gamma=0.9)])
def test_wrappers_show_the_episodes_a_slot_has_moved_to(wrap: Any) -> None:
    inside = lesson_envs()
    envs = wrap(inside)
    envs.reset(1)
    swing(envs, 6)

    for move in inside.assign(["long", "short", "short"]):
        envs.show_again(move.rows)
    again = wrap(lesson_envs())
    again.load_state_dict(envs.state_dict())

    assert np.array_equal(envs.obs, again.obs)
    assert_same(swing(envs, 10), swing(again, 10))


def test_lessons_with_other_spaces_are_refused_before_the_first_step() -> None:
    made = {"cart": lengths(5), "arm": partial(make_envs, "Acrobot-v1")}

    with pytest.raises(EnvMismatchError, match="'cart' and 'arm' differ in their observations"):
        LessonEnvs(made, num_envs=2, slots=1)


def test_slots_that_do_not_divide_the_environments_are_refused() -> None:
    with pytest.raises(EnvMismatchError, match="6 environments cannot be shared out evenly among 4 slots"):
        lesson_envs(num_envs=6, slots=4)


def test_an_unknown_lesson_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(UnknownNameError, match=r"no lesson 'shrt' in these environments\. Did you mean 'short'"):
        lesson_envs().assign(["shrt", "long", "long"])


def test_a_state_of_other_slots_is_refused() -> None:
    with pytest.raises(EnvStateError, match="saved for 2 slots, here there are 3"):
        lesson_envs().load_state_dict(lesson_envs(slots=2).state_dict())


def test_native_environments_with_fillers_keep_their_places() -> None:
    envs = LessonEnvs({"a": lengths(5, "native"), "b": lengths(8, "native")}, num_envs=4, slots=2)
    envs.reset(0)
    envs.assign(["a", "b"])

    fillers = []
    for _ in range(18):
        envs.step(np.zeros(4, dtype=np.int64))
        fillers.append(envs.valid.tolist())

    assert envs.has_fillers
    assert [False in row[:2] for row in fillers].count(True) >= 2
    assert envs.exactness == "bit-exact"
