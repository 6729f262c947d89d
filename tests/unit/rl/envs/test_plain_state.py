"""Values survive the way through strict JSON and arrays with type, bits and identity."""

from __future__ import annotations

import json
import math
import random
from collections import deque
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookloop.rl.envs import EnvStateError
from hookloop.rl.envs.plain_state import NotPlainError, PlainDecoder, PlainEncoder

from .saving import through_a_file

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=5),
    st.binary(max_size=5),
    st.builds(np.float32, st.floats(width=32, allow_nan=False)),
    st.builds(np.int64, st.integers(-(2**63), 2**63 - 1)),
    st.builds(np.uint64, st.integers(0, 2**64 - 1)),
)
KEYS = st.one_of(st.integers(), st.text(max_size=3), st.tuples(st.integers(), st.integers()))
VALUES = st.recursive(
    LEAVES,
    lambda parts: st.one_of(
        st.lists(parts, max_size=4),
        st.lists(parts, max_size=4).map(tuple),
        st.dictionaries(KEYS, parts, max_size=4),
        st.lists(parts, max_size=4).map(lambda items: deque(items, maxlen=9)),
    ),
    max_leaves=12,
)


def there_and_back(value: Any) -> Any:
    encoder = PlainEncoder()
    data = through_a_file({"value": encoder.encode(value), "heap": encoder.heap})
    return PlainDecoder(data["heap"]).decode(data["value"])


def same(one: Any, other: Any) -> bool:
    """Equal with types and signs of zeros, all the way down."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple | deque):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return same(list(one), list(other)) and same(list(one.values()), list(other.values()))
    if isinstance(one, float):
        return one == other and math.copysign(1.0, one) == math.copysign(1.0, other)
    return bool(one == other)


@settings(max_examples=150, deadline=None)
@given(VALUES)
def test_any_nest_of_plain_values_comes_back_the_same(value: Any) -> None:
    assert same(there_and_back(value), value)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.float64).reshape(2, 3),
        np.array([np.nan, np.inf, -0.0]),
        np.zeros((0, 3), dtype=np.float32),
        np.array(5, dtype=np.uint64),
        np.array([[True], [False]]),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array([[b"S", b"F"], [b"H", b"G"]]),
        np.array(["left", "right"]),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_arrays_come_back_with_their_bits(array: np.ndarray) -> None:
    back = there_and_back(array)

    assert back.dtype == array.dtype
    assert back.shape == array.shape
    assert back.tobytes() == array.tobytes()


@pytest.mark.parametrize("name", ["MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"])
def test_generators_go_on_where_they_were(name: str) -> None:
    generator = np.random.Generator(getattr(np.random, name)(7))
    generator.integers(9, size=3, dtype=np.int32)

    back = there_and_back(generator)

    assert back.random(5).tolist() == generator.random(5).tolist()


def test_older_generators_go_on_too() -> None:
    older, simple = np.random.RandomState(3), random.Random(3)
    older.standard_normal()
    simple.gauss(0, 1)

    older_back, simple_back = there_and_back(older), there_and_back(simple)

    assert older_back.standard_normal(3).tolist() == older.standard_normal(3).tolist()
    assert [simple_back.gauss(0, 1) for _ in range(3)] == [simple.gauss(0, 1) for _ in range(3)]


def test_what_was_shared_is_shared_again() -> None:
    array, generator = np.zeros(3), np.random.default_rng(0)

    back = there_and_back([array, {"same": array}, generator, (generator, array)])

    assert back[0] is back[1]["same"] is back[3][1]
    assert back[2] is back[3][0]


def test_a_list_may_contain_itself() -> None:
    ring: list[Any] = [1]
    ring.append(ring)

    back = there_and_back(ring)

    assert back[0] == 1
    assert back[1] is back


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (object(), "a object"),
        ([lambda: 0], "a function"),
        (np.array([object()]), "an array of dtype object"),
        (np.longdouble(1), "a numpy"),
    ],
)
def test_other_values_are_refused_by_name(value: object, words: str) -> None:
    with pytest.raises(NotPlainError, match=words):
        PlainEncoder().encode(value)


def test_two_windows_on_one_memory_are_refused() -> None:
    whole = np.zeros(6)

    with pytest.raises(NotPlainError, match="shares memory with another"):
        PlainEncoder().encode([whole[:4], whole[2:]])


def test_a_value_that_fails_leaves_nothing_behind() -> None:
    encoder = PlainEncoder()
    shared = [1, 2]
    with pytest.raises(NotPlainError):
        encoder.encode([shared, object()])

    data = {"value": encoder.encode(shared), "heap": encoder.heap}

    assert PlainDecoder(data["heap"]).decode(data["value"]) == [1, 2]
    assert len(encoder.heap) == 1


@pytest.mark.parametrize(
    "data",
    [{"@": 9}, {"eval": "1 + 1"}, {"generator": "SystemRandom", "state": None}, {"numpy": "object", "value": 1}, [1]],
)
def test_data_that_stands_for_nothing_is_refused(data: Any) -> None:
    with pytest.raises(EnvStateError, match="which stands for no value"):
        PlainDecoder({}).decode(data)


def test_encoded_values_are_strict_json() -> None:
    encoder = PlainEncoder()

    text = json.dumps(encoder.encode((math.inf, -math.inf, 2**200, b"x", None)), allow_nan=False)

    assert PlainDecoder({}).decode(json.loads(text)) == (math.inf, -math.inf, 2**200, b"x", None)
