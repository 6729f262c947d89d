"""A snapshot is out of training's reach, reuses its memory, and knows what must be finite."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hookloop.checkpoints.snapshot import Snapshot, SnapshotBuffers
from hookloop.checkpoints.tensor_file import TensorFile
from hookloop.errors import NonFiniteError
from tests.saving import PARTS, about, is_same, manager_in


def content_of(snapshot: Snapshot) -> dict[str, bytes]:
    return {name: b"".join(chunks) for name, chunks in snapshot.files().items()}


def test_later_changes_of_live_tensors_arrays_and_containers_do_not_reach_it() -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    state = {"model": {"w": weight}, "obs": np.ones(3), "view": torch.ones(2, 2).T, "steps": [1], "inner": {"a": 1}}

    snapshot = SnapshotBuffers().take(state, PARTS)
    before = content_of(snapshot)
    with torch.no_grad():
        weight.add_(1)
    state["obs"] += 1
    state["view"] *= 3
    state["steps"].append(2)
    state["inner"]["a"] = 2

    assert content_of(snapshot) == before


def pointers(snapshot: Snapshot) -> dict[str, int]:
    return {part: arena.memory.data_ptr() for part, arena in snapshot.arenas.items()}


def a_state(rows: int = 2, value: float = 1.0) -> dict[str, Any]:
    return {"model": {"w": torch.full((rows, 3), value)}, "optimizer": {"m": torch.ones(4)}, "rest": torch.ones(5)}


def test_memory_is_used_again_while_shapes_stay_the_same() -> None:
    buffers = SnapshotBuffers()

    first = pointers(buffers.take(a_state(value=1.0), PARTS))
    second = buffers.take(a_state(value=2.0), PARTS)

    assert pointers(second) == first
    assert b"".join(second.files()["model.safetensors"]).endswith(np.full(6, 2.0, np.float32).tobytes())


def test_only_what_changed_its_shape_gets_new_memory() -> None:
    buffers = SnapshotBuffers()
    first = buffers.take(a_state(rows=2), PARTS)

    second = buffers.take(a_state(rows=5), PARTS)

    assert second.arenas["model.safetensors"].memory.numel() == 5 * 3 * 4
    assert second.arenas["model.safetensors"] is not first.arenas["model.safetensors"]
    assert second.arenas["optimizer.safetensors"] is first.arenas["optimizer.safetensors"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("part", ["model", "optimizer"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_model_that_is_not_finite_is_refused_with_the_tensors_name(
    part: str, value: float, dtype: torch.dtype
) -> None:
    broken = torch.ones(1000, dtype=dtype)
    broken[567] = value
    snapshot = SnapshotBuffers().take({part: {"good": torch.ones(3), "layer.bad": broken}}, PARTS)

    with pytest.raises(NonFiniteError, match=rf"the {part} holds NaN or infinity in layer\.bad\. Resume"):
        snapshot.require_finite(("model", "optimizer"))


def test_the_rest_of_the_state_may_hold_what_it_likes() -> None:
    nan = torch.full((2,), float("nan"))

    SnapshotBuffers().take({"returns": nan, "obs": nan.numpy()}, PARTS).require_finite(("model", "optimizer"))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_sum_that_overflows_is_no_infinity(dtype: torch.dtype) -> None:
    large = torch.full((1000,), torch.finfo(dtype).max, dtype=dtype)
    opposite = torch.cat([large, -large])

    snapshot = SnapshotBuffers().take({"model": {"large": large, "opposite": opposite}}, PARTS)

    snapshot.require_finite(("model",))


def test_integers_are_finite() -> None:
    SnapshotBuffers().take({"model": {"n": torch.tensor([2**62, -(2**62)])}}, PARTS).require_finite(("model",))


def test_a_state_without_tensors_has_its_json_and_empty_files() -> None:
    files = content_of(SnapshotBuffers().take({"model": {}, "a": [1, None, "x"]}, {"model": ("model",)}))

    assert json.loads(files["state.json"]) == {"model": {}, "a": [1, None, "x"]}
    assert TensorFile(bytearray(files["model.safetensors"]), "model").places == {}


def test_all_but_the_weights_is_cut_into_pieces_of_bounded_number_that_come_back_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hookloop.checkpoints.snapshot.PIECE_BYTES", 64)
    state = {
        "model": {f"w{i}": torch.randn(10) for i in range(200)},
        "optimizer": {f"m{i}": torch.randn(10) for i in range(200)},
    }
    with manager_in(tmp_path, asynchronous=False) as manager:
        manager.save(state, about(1), parts=PARTS)
        checkpoint, loaded = manager.load()

    files = checkpoint.manifest.files
    assert "model.safetensors" in files
    assert 2 <= sum(name.startswith("optimizer-") for name in files) <= 32
    assert is_same(loaded, state)
