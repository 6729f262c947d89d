"""Specs describe arrays, and refuse to describe nonsense."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from hookloop.rl.specs import (
    ArraySpec,
    ContinuousActions,
    DiscreteActions,
    MultiDiscreteActions,
    ObservationSpec,
    SpecError,
)


def test_an_array_spec_allocates_for_all_environments() -> None:
    zeros = ArraySpec((3, 2), "uint8").zeros(4)

    assert zeros.shape == (4, 3, 2)
    assert zeros.dtype == np.uint8


def test_specs_are_equal_whatever_the_hint_says() -> None:
    assert ArraySpec((), "int64", num_values=500) == ArraySpec((), "int64")
    assert ArraySpec((), "int64") != ArraySpec((), "int32")


@pytest.mark.parametrize(("dtype", "words"), [("flot32", "no numpy dtype"), ("<f4", "write 'float32' for '<f4'")])
def test_a_dtype_goes_by_its_full_name(dtype: str, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        ArraySpec((), dtype)


def test_a_single_observation_is_an_array_and_a_dict_is_a_dict() -> None:
    single = ObservationSpec.single(ArraySpec((4,), "float32"))
    several = ObservationSpec({"camera": ArraySpec((2, 2), "uint8"), "arm/joints": ArraySpec((3,), "float32")})

    assert isinstance(single.zeros(2), np.ndarray)
    assert single.array == ArraySpec((4,), "float32")
    zeros = several.zeros(2)
    assert isinstance(zeros, dict)
    assert {key: array.shape for key, array in zeros.items()} == {"camera": (2, 2, 2), "arm/joints": (2, 3)}


def test_the_array_of_a_dict_observation_must_be_named() -> None:
    several = ObservationSpec({"b": ArraySpec((), "float32"), "a": ArraySpec((), "float32")})

    with pytest.raises(SpecError, match=r"dicts with the keys \['a', 'b'\]; use .arrays\[key\]"):
        _ = several.array


@pytest.mark.parametrize(
    ("action", "shape", "dtype", "num_choices"),
    [(DiscreteActions(5), (), "int64", 5), (MultiDiscreteActions((3, 2)), (2,), "int64", 5)],
)
def test_choices_are_whole_numbers(
    action: DiscreteActions | MultiDiscreteActions, shape: tuple[int, ...], dtype: str, num_choices: int
) -> None:
    assert (action.shape, action.dtype, action.num_choices) == (shape, dtype, num_choices)


def test_continuous_actions_keep_their_bounds() -> None:
    action = ContinuousActions.between(np.array([[-1.0, -2.0]]), np.array([[1.0, np.inf]]))

    low, high = action.bounds()

    assert (action.shape, action.dtype) == ((1, 2), "float32")
    assert low.tolist() == [[-1.0, -2.0]]
    assert high.tolist() == [[1.0, np.inf]]
    assert action == ContinuousActions((1, 2), (-1.0, -2.0), (1.0, np.inf))


def test_specs_that_describe_nothing_are_refused() -> None:
    with pytest.raises(SpecError, match="at least one action"):
        DiscreteActions(0)
    with pytest.raises(SpecError, match="at least one option"):
        MultiDiscreteActions((3, 0))
    with pytest.raises(SpecError, match="above its high bound"):
        ContinuousActions((1,), (1.0,), (-1.0,))
    with pytest.raises(SpecError, match="need 2 bounds"):
        ContinuousActions((2,), (0.0,), (1.0,))
    with pytest.raises(SpecError, match="at least one array"):
        ObservationSpec({})


def test_specs_need_neither_gymnasium_nor_torch() -> None:
    code = "import sys, hookloop.rl.specs; print({'gymnasium', 'torch'} & set(sys.modules))"

    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert shown.stdout.strip() == "set()"
