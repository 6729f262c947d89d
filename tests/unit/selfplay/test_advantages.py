"""Advantages across seats, against plain arithmetic: one game at a time, one step at a time."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hookloop.selfplay.advantages import estimate_signed_advantages, signs_of

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
