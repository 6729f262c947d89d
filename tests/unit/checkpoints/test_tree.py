"""Any state is taken apart and put together again with the same types and bits, whatever its keys are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hookloop.checkpoints.snapshot import SnapshotBuffers
from hookloop.checkpoints.store import CheckpointStore
from hookloop.checkpoints.tree import MAX_DEPTH, Disassembly, put_together
from hookloop.errors import DamagedCheckpointError, HookStateError
from tests.faults.simulated_disk import scratch_folder
from tests.saving import about, is_same, manager_in

TORCH_TYPES = [
    torch.bool, torch.uint8, torch.int8, torch.uint16, torch.int16, torch.uint32, torch.int32, torch.uint64,
    torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64,
]  # fmt: skip
NUMPY_TYPES = ["?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"]


@st.composite
def tensors(draw: st.DrawFn) -> torch.Tensor:
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    dtype = draw(st.sampled_from(TORCH_TYPES))
    tensor = torch.tensor(np.arange(int(np.prod(shape))).reshape(shape) % 2).to(dtype)
    if dtype.is_floating_point and tensor.numel():
        tensor.view(-1)[0] = draw(st.sampled_from([float("nan"), float("inf"), -0.0, 1.5]))
    return tensor.mT if len(shape) >= 2 and draw(st.booleans()) else tensor


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray[Any, Any]:
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    array = np.arange(np.prod(shape)).reshape(shape).astype(draw(st.sampled_from(NUMPY_TYPES)))
    layout = draw(st.sampled_from(["plain", "transposed", "reversed", "read only"]))
    if layout == "transposed":
        return array.T
    if layout == "reversed" and array.ndim:
        return array[::-1]
    array.flags.writeable = layout != "read only"
    return array


scalars = st.builds(lambda kind, number: np.dtype(kind).type(number), st.sampled_from(NUMPY_TYPES), st.integers(0, 9))
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
keys = st.text(max_size=5) | st.sampled_from(["$torch", "$", "$$numpy", "a/b", "a", "b", "a/b'", "__metadata__", ""])
leaves = st.none() | st.booleans() | numbers | st.text(max_size=5) | tensors() | arrays() | scalars
states = st.dictionaries(
    keys,
    st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3)),
    max_size=5,
)


@settings(max_examples=100, deadline=None)
@given(states, st.sampled_from([{}, {"model": ("a",)}, {"model": ("a",), "optimizer": ("b",)}]))
def test_any_state_comes_back_from_disk_with_the_same_types_and_bits(
    state: dict[str, Any], parts: dict[str, tuple[str, ...]]
) -> None:
    # In memory: a hundred checkpoints, each flushed a few times.
    with scratch_folder() as folder, manager_in(folder) as manager:
        if not has_non_finite(state, parts):
            manager.save(state, about(1), parts=parts)
            _, read = CheckpointStore(folder).read("step-000000000001")

            assert is_same(state, read)


def has_non_finite(state: dict[str, Any], parts: dict[str, tuple[str, ...]]) -> bool:
    snapshot = SnapshotBuffers().take(state, parts)
    return any(snapshot.arenas[f"{part}.safetensors"].non_finite() for part in parts)


def test_names_that_would_collide_stay_apart() -> None:
    state = {"a/b": torch.ones(1), "a": {"b": torch.zeros(1)}, "a/b'": torch.full((1,), 2.0)}

    taken = Disassembly(state, {})
    back = put_together(taken.skeleton, lambda kind, part, name: taken.tensors[part][name])

    assert len(taken.tensors["state"]) == 3
    assert is_same(state, back)


def test_the_name_the_format_keeps_for_itself_is_no_tensors_name() -> None:
    taken = Disassembly({"__metadata__": torch.ones(1)}, {})

    assert "__metadata__" not in taken.tensors["state"]


def test_a_key_that_looks_like_a_place_holder_is_not_taken_for_one() -> None:
    state = {"$torch": "state:a", "inner": {"$scalar": 3}, "a": torch.ones(1)}

    taken = Disassembly(state, {})

    assert is_same(state, put_together(taken.skeleton, lambda kind, part, name: taken.tensors[part][name]))


def nested(levels: int) -> Any:
    state: Any = 0
    for _ in range(levels):
        state = [state]
    return state


def test_a_state_that_could_not_be_read_again_is_not_taken_apart() -> None:
    put_together(Disassembly(nested(MAX_DEPTH), {}).skeleton, lambda *_: None)

    with pytest.raises(HookStateError, match="deeper than 64"):
        Disassembly(nested(MAX_DEPTH + 1), {})


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({1, 2}, "set"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (b"bytes", "bytes"),
        ({3: "number"}, "the key 3"),
        (Path, "type"),
        (1j, "complex"),
    ],
    ids=repr,
)
def test_what_json_has_no_word_for_is_refused_with_its_place(value: object, fault: str) -> None:
    with pytest.raises(HookStateError, match=rf"workload\.agents\.1.*{fault}"):
        Disassembly({"workload": {"agents": [0, value]}}, {})


@pytest.mark.parametrize(
    "skeleton",
    [
        {"$torch": 3},
        {"$torch": "no colon"},
        {"$numpy": None},
        {"$unheard": 1},
        {"$torch": "state:a", "$numpy": "state:a"},
        {"$torch": "state:a", "more": 1},
        nested(MAX_DEPTH + 1),
    ],
    ids=lambda skeleton: str(skeleton)[:40],
)
def test_a_skeleton_that_nobody_wrote_is_damage(skeleton: Any) -> None:
    with pytest.raises(DamagedCheckpointError):
        put_together(skeleton, lambda *_: np.zeros(1))


def test_a_file_of_the_wrong_types_is_refused_when_it_is_saved(tmp_path: Path) -> None:
    with manager_in(tmp_path) as manager, pytest.raises(HookStateError, match="complex64"):
        manager.save({"a": torch.zeros(2, dtype=torch.complex64)}, about(1))

    assert manager.store.names() == []
