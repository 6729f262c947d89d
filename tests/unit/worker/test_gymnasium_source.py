from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from hookloop.curriculum import Lesson, LessonEnv
from hookloop.errors import UnknownNameError
from hookloop.evaluation import Wanted
from hookloop.rl.config import EnvConfig, PolicyConfig
from hookloop.worker import GymnasiumSource, Rollout, WorkerError

ENV = EnvConfig(id="CartPole-v1", num_envs=4)
POLICY = PolicyConfig(hidden=(8,))
SHORT = {"short": Lesson(env=LessonEnv(kwargs={"max_episode_steps": 5}))}


def make(**changes: Any) -> GymnasiumSource:
    return GymnasiumSource(ENV, policy=POLICY, **changes)


def same(first: list[Rollout], second: list[Rollout]) -> bool:
    return len(first) == len(second) and all(
        (one.reward, one.length) == (two.reward, two.length)
        and one.arrays.keys() == two.arrays.keys()
        and all(np.array_equal(one.arrays[name], two.arrays[name]) for name in one.arrays)
        for one, two in zip(first, second, strict=True)
    )


def test_a_rollout_is_an_episode_with_all_that_was_seen_done_and_earned() -> None:
    rollouts = make().generate(None, 3, seed=1)

    assert len(rollouts) == 3
    for each in rollouts:
        steps = each.length
        assert {name: array.shape for name, array in each.arrays.items()} == {
            "observations": (steps + 1, 4),
            "actions": (steps,),
            "rewards": (steps,),
            "values": (steps,),
            "log_probs": (steps,),
        }
        assert each.reward == each.arrays["rewards"].sum()
        assert (each.arrays["log_probs"] <= 0).all()
        assert each.about["end"] in ("terminated", "truncated")


def test_rollouts_are_a_function_of_lesson_count_seed_and_weights_alone() -> None:
    source, other = make(lessons=SHORT), make(lessons=SHORT)
    other.generate("short", 2, seed=9)

    assert same(source.generate("short", 3, seed=4), other.generate("short", 3, seed=4))
    assert not same(source.generate("short", 3, seed=4), other.generate("short", 3, seed=5))


def test_weights_are_taken_over_by_value_and_their_version_stands_in_every_rollout() -> None:
    source, trained = make(seed=1), make(seed=2)
    tensors = {name: tensor.clone() for name, tensor in trained.policy.state_dict().items()}

    source.take_weights(12, tensors)
    for tensor in tensors.values():
        tensor.zero_()

    rollouts = source.generate(None, 2, seed=3)
    assert same(rollouts, trained.generate(None, 2, seed=3))
    assert {each.weight_version for each in rollouts} == {12}


def test_lessons_differ_in_their_environments_and_an_unknown_one_is_refused() -> None:
    source = make(lessons=SHORT)

    assert max(each.length for each in source.generate("short", 8, seed=0)) <= 5
    played = source.play("short", Wanted(episodes=4, seed=0))
    assert [episode.length for episode in played.episodes] == [5, 5, 5, 5]
    with pytest.raises(UnknownNameError, match=r"no lesson 'shrt' in this source\. Did you mean 'short'"):
        source.generate("shrt", 1, seed=0)


def test_weights_of_another_network_are_refused_with_the_next_step() -> None:
    with pytest.raises(WorkerError, match=r"version 3 do not fit.*Give the worker the policy settings of the trainer"):
        make().take_weights(3, {"network.weight": torch.zeros(2)})
