"""The files are safetensors files: what is written here the library reads, and the other way round, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch

from hookloop.checkpoints.snapshot import SnapshotBuffers
from hookloop.checkpoints.tensor_file import NAMES_OF_TYPES, Layout, TensorFile
from hookloop.errors import DamagedCheckpointError
from tests.hostile_files import TENSOR_FILES, entry, tensor_file
from tests.saving import is_same


def examples() -> dict[str, torch.Tensor]:
    """One tensor of each type, and the shapes that are easily forgotten."""
    random = torch.Generator().manual_seed(0)
    tensors = {
        name: torch.randint(0, 2, (3, 5), generator=random).to(getattr(torch, name)) for name in NAMES_OF_TYPES.values()
    }
    tensors["layers.0/weight"] = torch.randn(4, 3, generator=random)
    tensors["no dimension"] = torch.tensor(2.5)
    tensors["empty"] = torch.empty(0, 3, dtype=torch.bfloat16)
    tensors["not a number"] = torch.tensor([float("nan"), -0.0, float("inf")], dtype=torch.float16)
    return tensors


def test_the_library_reads_what_is_written_here() -> None:
    tensors = examples()

    content = b"".join(SnapshotBuffers().take(tensors, {}).files()["state.safetensors"])
    read = safetensors.torch.load(content)

    assert read.keys() == tensors.keys()
    assert all(is_same(tensors[name], read[name]) for name in tensors)


def test_what_the_library_writes_is_read_here() -> None:
    tensors = examples()

    file = TensorFile(bytearray(safetensors.torch.save(tensors, {"format": "pt"})), "file")

    assert file.places.keys() == tensors.keys()
    assert all(is_same(tensors[name], file.torch(name)) for name in tensors)


def test_arrays_of_numpy_are_read_here_too() -> None:
    arrays = {"a": np.arange(6, dtype=np.uint16).reshape(2, 3), "b": np.array(3.5), "c": np.empty((0, 2), np.int8)}

    file = TensorFile(bytearray(safetensors.numpy.save(arrays)), "file")

    assert all(is_same(arrays[name], file.numpy(name)) for name in arrays)


def test_numpy_is_told_of_a_type_it_does_not_have() -> None:
    file = TensorFile(bytearray(safetensors.torch.save({"a": torch.ones(2, dtype=torch.bfloat16)})), "file")

    with pytest.raises(DamagedCheckpointError, match="BF16"):
        file.numpy("a")


def test_every_tensor_begins_where_its_type_may_be_read() -> None:
    tensors = {"c": torch.ones(3, dtype=torch.int8), "b": torch.ones(3, dtype=torch.float64), "a": torch.ones(5)}

    header, data = SnapshotBuffers().take(tensors, {}).files()["state.safetensors"]
    file = TensorFile(bytearray(header) + data, "file")

    assert len(header) % 8 == 0
    assert all(place.begin % tensors[name].element_size() == 0 for name, place in file.places.items())


@pytest.mark.parametrize("content", TENSOR_FILES.values(), ids=list(TENSOR_FILES))
def test_a_file_that_nobody_wrote_is_refused(content: bytearray) -> None:
    with pytest.raises(DamagedCheckpointError, match=r"hostile\.safetensors"):
        TensorFile(content, "hostile.safetensors")


def test_a_tensor_that_is_not_there_is_named() -> None:
    with pytest.raises(DamagedCheckpointError, match="does not hold 'b'"):
        TensorFile(tensor_file({"a": entry()}), "file").torch("b")


def test_two_layouts_are_equal_if_every_byte_has_the_same_place() -> None:
    kinds = {"a": ("F32", (2,)), "b": ("F64", (1,))}

    assert Layout.of(kinds) == Layout.of(dict(reversed(kinds.items())))
    assert Layout.of(kinds) != Layout.of({**kinds, "b": ("I64", (1,))})
