"""Advantages across seats, against plain arithmetic: one game at a time, one step at a time."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hookloop.selfplay.advantages import estimate_signed_advantages, signed_vtrace, signs_of

numbers = st.floats(-2, 2, width=32)


def plainly(rewards, values, last_value, last_seat, ends, bootstraps, seats, gamma, gae_lambda):
    """Return the advantages of one game after another in one place, by the definition."""
    steps = len(rewards)
    found = [0.0] * steps
    for t in reversed(range(steps)):
        next_seat = last_seat if t + 1 == steps else seats[t + 1]
        next_value = last_value if t + 1 == steps else values[t + 1]
        sign = 1 if next_seat == seats[t] else -1
        if ends[t]:
            found[t] = rewards[t] + gamma * bootstraps[t] - values[t]
            continue
        error = rewards[t] + gamma * sign * next_value - values[t]
        later = found[t + 1] if t + 1 < steps else 0.0
        found[t] = error + gamma * gae_lambda * sign * later
    return found


@st.composite
def experiences(draw):
    shape = (draw(st.integers(1, 9)), draw(st.integers(1, 3)))
    floats = arrays(np.float32, shape, elements=numbers)
    ends = draw(arrays(bool, shape))
    return {
        "rewards": draw(floats),
        "values": draw(floats),
        "last_values": draw(arrays(np.float32, shape[1], elements=numbers)),
        "last_seats": draw(arrays(np.int8, shape[1], elements=st.integers(0, 1))),
        "ends": ends,
        "bootstraps": draw(floats) * ends,
        "seats": draw(arrays(np.int8, shape, elements=st.integers(0, 1))),
    }


@given(experiences(), st.floats(0, 1), st.floats(0, 1))
def test_signed_advantages_are_those_of_the_definition(experience, gamma, gae_lambda) -> None:
    out = np.empty_like(experience["rewards"])

    estimate_signed_advantages(
        experience["rewards"],
        experience["values"],
        experience["last_values"] * signs_of(experience["last_seats"]),
        experience["ends"],
        experience["bootstraps"],
        signs_of(experience["seats"]),
        gamma=gamma,
        gae_lambda=gae_lambda,
        out_TN=out,
    )

    for place in range(out.shape[1]):
        column = {name: values[..., place].tolist() for name, values in experience.items()}
        expected = plainly(
            column["rewards"], column["values"], column["last_values"], column["last_seats"], column["ends"],
            column["bootstraps"], column["seats"], gamma, gae_lambda,
        )  # fmt: skip
        np.testing.assert_allclose(out[:, place], expected, rtol=1e-4, atol=1e-4)


def test_the_losers_last_move_is_blamed_for_the_winners_reply() -> None:
    rewards = np.array([[0], [0], [1]], dtype=np.float32)  # the first seat wins with the third move
    ends = np.array([[False], [False], [True]])
    zeros, out = np.zeros_like(rewards), np.empty_like(rewards)

    estimate_signed_advantages(
        rewards, zeros, np.zeros(1, dtype=np.float32), ends, zeros, signs_of(np.array([[0], [1], [0]])),
        gamma=1.0, gae_lambda=1.0, out_TN=out,
    )  # fmt: skip

    assert out.ravel().tolist() == [1.0, -1.0, 1.0]


def plain_vtrace(ratios, rewards, values, last_value, last_seat, ends, bootstraps, seats, gamma, decay):
    """Return targets and advantages of one game after another in one place, each as its mover sees it."""
    steps = len(rewards)
    targets, advantages = [0.0] * steps, [0.0] * steps
    correction = 0.0  # of the step after, as its own mover sees it
    for t in reversed(range(steps)):
        next_seat = last_seat if t + 1 == steps else seats[t + 1]
        following = last_value if t + 1 == steps else values[t + 1]
        sign = 1 if next_seat == seats[t] else -1
        if ends[t]:
            following, correction, sign = bootstraps[t], 0.0, 1
        clipped = min(1.0, ratios[t])
        error = clipped * (rewards[t] + gamma * sign * following - values[t])
        advantages[t] = error + clipped * gamma * sign * decay * correction
        correction = error + gamma * decay * clipped * sign * correction
        targets[t] = values[t] + correction
    return targets, advantages


@settings(max_examples=50)
@given(experiences(), st.data(), st.floats(0, 1), st.floats(0, 1))
def test_signed_vtrace_is_that_of_the_definition(experience, data, gamma, decay) -> None:
    shape = experience["rewards"].shape
    log_ratios = data.draw(arrays(np.float32, shape, elements=numbers))

    found = signed_vtrace(log_ratios, *signed_arguments(experience), gamma=gamma, decay=decay)

    for place in range(shape[1]):
        column = {name: values[..., place].tolist() for name, values in experience.items()}
        targets, advantages = plain_vtrace(
            np.exp(log_ratios[:, place]).tolist(), column["rewards"], column["values"], column["last_values"],
            column["last_seats"], column["ends"], column["bootstraps"], column["seats"], gamma, decay,
        )  # fmt: skip
        np.testing.assert_allclose(found.targets[:, place], targets, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(found.advantages[:, place], advantages, rtol=1e-4, atol=1e-4)


@settings(max_examples=50)
@given(experiences(), st.floats(0, 1), st.floats(0, 1))
def test_of_moves_as_likely_as_they_were_signed_vtrace_is_the_signed_advantage(experience, gamma, decay) -> None:
    expected = np.empty_like(experience["rewards"])
    estimate_signed_advantages(*signed_arguments(experience), gamma=gamma, gae_lambda=decay, out_TN=expected)

    found = signed_vtrace(np.zeros_like(expected), *signed_arguments(experience), gamma=gamma, decay=decay)

    np.testing.assert_allclose(found.advantages, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.targets, expected + experience["values"], rtol=1e-4, atol=1e-4)


def signed_arguments(experience):
    return (
        experience["rewards"], experience["values"], experience["last_values"] * signs_of(experience["last_seats"]),
        experience["ends"], experience["bootstraps"], signs_of(experience["seats"]),
    )  # fmt: skip


def test_signed_vtrace_of_a_seat_that_moves_twice_and_of_a_game_that_is_cut_off() -> None:
    # The first seat moves twice in a row, the second answers, and there the game is cut off; the second seat, which has
    # moved, would give 0.4 for what follows. The second move has become half as likely, the third twice as likely.
    seats = np.array([[0], [0], [1]])
    values = np.array([[0.6], [0.1], [-0.2]], dtype=np.float32)
    ends = np.array([[False], [False], [True]])
    bootstraps = np.array([[0.0], [0.0], [0.4]], dtype=np.float32)
    log_ratios = np.log(np.array([[1.0], [0.5], [2.0]], dtype=np.float32))
    zeros, elsewhere = np.zeros_like(values), np.array([9.0], dtype=np.float32)  # the next game's is nobody's here

    found = signed_vtrace(log_ratios, zeros, values, elsewhere, ends, bootstraps, signs_of(seats), gamma=0.5)

    third = 0.5 * 0.4 - -0.2  # a ratio above 1 counts as 1
    second = 0.5 * (0.5 * 0.2 - 0.1) + 0.5 * 0.5 * -third  # what is won by the second seat is lost to the first
    first = (0.5 * 0.1 - 0.6) + 0.5 * second  # the same seat moves on: no change of sign
    np.testing.assert_allclose(found.advantages.ravel(), [first, second, third], rtol=1e-5)
    np.testing.assert_allclose(found.targets.ravel(), [0.6 + first, 0.1 + second, -0.2 + third], rtol=1e-5)
