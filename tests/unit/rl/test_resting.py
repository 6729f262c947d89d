"""The memory of recurrent policies in episodes that rest."""

from __future__ import annotations

import torch

from hookloop.rl.envs import Move
from hookloop.rl.resting import RestingMemory, leaves

FIRST, SECOND = slice(0, 2), slice(2, 4)


def memory(value: float) -> list[torch.Tensor]:
    return [torch.full((4, 3), value), torch.full((4, 1), value)]


def test_a_lesson_that_was_never_played_begins_with_an_empty_memory() -> None:
    live = memory(1.0)

    RestingMemory().change(live, [Move(SECOND, "walk", "run")])

    assert [leaf[:, 0].tolist() for leaf in live] == [[1.0, 1.0, 0.0, 0.0]] * 2


def test_memory_comes_back_with_the_lesson_it_belongs_to() -> None:
    resting, live = RestingMemory(), memory(1.0)

    resting.change(live, [Move(SECOND, "walk", "run")])
    for leaf in live:
        leaf.fill_(2.0)
    resting.change(live, [Move(SECOND, "run", "walk"), Move(FIRST, "walk", "run")])

    assert [leaf[:, 0].tolist() for leaf in live] == [[0.0, 0.0, 1.0, 1.0]] * 2
    resting.change(live, [Move(SECOND, "walk", "run")])
    assert live[0][:, 0].tolist() == [0.0, 0.0, 2.0, 2.0]


def test_what_rests_is_saved() -> None:
    whole, resumed, live = RestingMemory(), RestingMemory(), memory(1.0)
    whole.change(live, [Move(FIRST, "walk", "run")])

    resumed.load_state_dict(whole.state_dict())
    again = memory(5.0)
    resumed.change(again, [Move(FIRST, "run", "walk")])

    assert again[1][:, 0].tolist() == [1.0, 1.0, 5.0, 5.0]


def test_the_leaves_of_a_memory_come_in_order() -> None:
    first, second = torch.zeros(1), torch.ones(1)

    assert leaves(first) == [first]
    assert [leaf.item() for leaf in leaves(((first, second), first))] == [0.0, 1.0, 0.0]
