"""A pool of past versions: the newest stay, and the champion besides."""

from __future__ import annotations

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hookloop.errors import ConfigError, UnknownNameError
from hookloop.selfplay.pool import OpponentPool


def filled(count: int, *, capacity: int = 3) -> OpponentPool:
    pool = OpponentPool(capacity)
    for k in range(count):
        pool.add(f"v{k}", {"weight": torch.full((2,), float(k))})
    return pool


def names(pool: OpponentPool) -> list[str]:
    return [version.name for version in pool.versions]


def test_the_oldest_version_goes_first() -> None:
    assert names(filled(5)) == ["v2", "v3", "v4"]


def test_the_champion_stays_however_old_it_is() -> None:
    pool = filled(3)
    pool.crown("v1")
    for k in range(3, 9):
        pool.add(f"v{k}", {"weight": torch.zeros(2)})

    assert names(pool) == ["v1", "v6", "v7", "v8"]
    assert pool.champion is not None
    assert pool.champion.weights["weight"].tolist() == [1.0, 1.0]

    pool.crown("v8")

    assert names(pool) == ["v6", "v7", "v8"], "who is champion no longer is as old as the rest"


def test_what_is_kept_is_a_copy() -> None:
    weight = torch.zeros(2)
    pool = OpponentPool(1)
    pool.add("v0", {"weight": weight})
    weight.fill_(7.0)

    assert pool.versions[0].weights["weight"].tolist() == [0.0, 0.0]


def test_every_version_is_drawn_the_champion_among_them() -> None:
    pool = filled(3)
    pool.crown("v0")
    pool.add("v3", {"weight": torch.zeros(2)})
    generator = torch.Generator().manual_seed(0)
    drawn = [version.name for _ in range(400) if (version := pool.sample(generator)) is not None]

    assert {name: drawn.count(name) > 60 for name in names(pool)} == dict.fromkeys(["v0", "v1", "v2", "v3"], True)


def test_an_empty_pool_has_nobody_to_draw() -> None:
    assert OpponentPool(1).sample(torch.Generator()) is None


@given(st.integers(1, 4), st.lists(st.booleans(), max_size=10))
def test_a_saved_pool_goes_on_as_it_was(capacity: int, crowned: list[bool]) -> None:
    pool = OpponentPool(capacity)
    for k, is_champion in enumerate(crowned):
        pool.add(f"v{k}", {"weight": torch.full((1,), float(k))})
        if is_champion:
            pool.crown(f"v{k}")
    restored = OpponentPool(capacity)
    restored.load_state_dict(copy.deepcopy(pool.state_dict()))
    for each in (pool, restored):
        each.add("next", {"weight": torch.zeros(1)})

    assert names(restored) == names(pool)
    assert (restored.champion and restored.champion.name) == (pool.champion and pool.champion.name)
    assert [v.weights["weight"].item() for v in restored.versions] == [
        v.weights["weight"].item() for v in pool.versions
    ]


def test_mistakes_are_told() -> None:
    with pytest.raises(ConfigError, match="at least 1 version"):
        OpponentPool(0)
    with pytest.raises(UnknownNameError, match="Did you mean 'v1'"):
        filled(2).crown("v1x")
