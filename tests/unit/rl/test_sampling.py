"""Minibatches: every row once, sizes that fit, priorities that are corrected for."""

from __future__ import annotations

import pytest
import torch

from hookloop.errors import ConfigError
from hookloop.rl.experience import Experience, ExperienceConflictError, merge_specs
from hookloop.rl.sampling import Sampler, check_arithmetic
from hookloop.rl.specs import ArraySpec

SPEC = {"the environment": {"obs": ArraySpec((1,), "float32"), "actions": ArraySpec((), "int64")}}


def experience_of(horizon: int, num_envs: int, **more: ArraySpec) -> Experience:
    experience = Experience(merge_specs({**SPEC, "more": more}), num_envs=num_envs, horizon=horizon)
    numbers = torch.arange(horizon * num_envs, dtype=torch.float32).view(horizon, num_envs)
    experience["obs"].copy_(numbers.unsqueeze(-1))
    experience["advantages"].copy_(numbers)
    experience["valid"].fill_(True)
    experience.steps = horizon
    return experience


def rows_of(sampler: Sampler, seed: int = 0, *, has_fillers: bool = False) -> list[list[float]]:
    generator = torch.Generator().manual_seed(seed)
    return [m.obs.flatten().tolist() for m in sampler.passes(generator, has_fillers=has_fillers)]


def test_a_shuffled_pass_holds_every_row_once_and_keeps_columns_together() -> None:
    sampler = Sampler(experience_of(8, 4), num_minibatches=4)
    generator = torch.Generator().manual_seed(1)

    minibatches = list(sampler.passes(generator, has_fillers=False))

    drawn = [row for minibatch in minibatches for row in minibatch.obs.flatten().tolist()]
    assert sorted(drawn) == list(range(32))
    assert drawn != sorted(drawn)
    assert all(m.obs.flatten().tolist() == m.advantages.tolist() for m in minibatches)
    assert [m.num_rows for m in minibatches] == [8, 8, 8, 8]


def test_a_sequential_pass_is_in_the_order_of_collection() -> None:
    sampler = Sampler(experience_of(4, 2), num_minibatches=2, sampling="sequential")

    assert rows_of(sampler) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_the_same_seed_gives_the_same_order_and_another_seed_another() -> None:
    sampler = Sampler(experience_of(8, 4), num_minibatches=4)

    assert rows_of(sampler, 1) == rows_of(sampler, 1)
    assert rows_of(sampler, 1) != rows_of(sampler, 2)


def test_fillers_are_never_drawn() -> None:
    experience = experience_of(4, 4)
    experience["valid"][1, 2] = False
    experience["valid"][3, 0] = False
    sampler = Sampler(experience, num_minibatches=4)

    drawn = sorted(row for rows in rows_of(sampler, has_fillers=True) for row in rows)

    assert drawn == [row for row in range(16) if row not in (6, 12)]


def test_a_rollout_that_was_cut_short_gives_only_what_was_collected() -> None:
    experience = experience_of(8, 2)
    experience.steps = 3
    sampler = Sampler(experience, num_minibatches=2)

    assert sorted(row for rows in rows_of(sampler) for row in rows) == [0, 1, 2, 3, 4, 5]


def test_large_advantages_are_drawn_more_often_and_weigh_less() -> None:
    experience = experience_of(64, 4)
    experience["advantages"].fill_(0.01)
    experience["advantages"][0, 0] = 10.0
    sampler = Sampler(experience, num_minibatches=1, sampling="prioritised", alpha=1.0)

    (minibatch,) = sampler.passes(torch.Generator().manual_seed(0), has_fillers=False)

    is_large = minibatch.advantages == 10.0
    assert is_large.float().mean() > 0.5
    assert minibatch.weights is not None
    assert minibatch.weights[is_large].max() < minibatch.weights[~is_large].min()


def test_segments_keep_their_steps_in_order_time_first() -> None:
    experience = experience_of(6, 2, starts=ArraySpec((), "bool"))
    sampler = Sampler(experience, num_minibatches=1, segment_length=3, sampling="sequential")

    (minibatch,) = sampler.passes(torch.Generator(), has_fillers=False, states=lambda indices: indices)

    assert minibatch.obs[:, :, 0].tolist() == [[0, 1, 6, 7], [2, 3, 8, 9], [4, 5, 10, 11]]
    assert minibatch.advantages.tolist() == [0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11]
    assert minibatch.state.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("num_envs", "horizon", "num_minibatches", "segment_length", "words"),
    [
        (3, 10, 4, 1, "30 segments.*4 minibatches.*nearest number that fits is 3"),
        (4, 10, 4, 4, "horizon 10.*segments of 4 steps.*is 5.*horizon of 8"),
        (0, 10, 4, 1, "num_envs must be at least 1, got 0"),
    ],
)
def test_sizes_that_do_not_fit_are_refused_with_the_nearest_that_do(
    num_envs: int, horizon: int, num_minibatches: int, segment_length: int, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        check_arithmetic(
            num_envs=num_envs, horizon=horizon, num_minibatches=num_minibatches, segment_length=segment_length
        )


def test_two_losses_that_want_one_column_in_two_ways_are_refused() -> None:
    wanted = {"the loss 'a'": {"mask": ArraySpec((3,), "bool")}, "the loss 'b'": {"mask": ArraySpec((4,), "bool")}}

    with pytest.raises(ExperienceConflictError, match=r"the loss 'b' wants the column 'mask' as bool\[4\].*bool\[3\]"):
        merge_specs(wanted)
