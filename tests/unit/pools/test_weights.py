"""Weights in shared memory: whole, by version, whatever their types."""

from __future__ import annotations

import os
import threading
import time

import torch
from hypothesis import given
from hypothesis import strategies as st

from hookloop.pools.weights import WeightsReader, WeightsWriter
from tests.waiting import PATIENCE_SECONDS

TYPES = [torch.float32, torch.bfloat16, torch.float64, torch.int64, torch.uint8, torch.bool]


@given(st.lists(st.tuples(st.sampled_from(TYPES), st.lists(st.integers(0, 5), max_size=3)), max_size=6))
def test_what_is_published_is_read(described: list[tuple[torch.dtype, list[int]]]) -> None:
    tensors = {f"layer.{number}": torch.randn(shape).to(dtype) for number, (dtype, shape) in enumerate(described)}
    writer = WeightsWriter(tensors)
    try:
        reader = WeightsReader(os.dup(writer.descriptor))
        for version in (3, 4, 7):
            changed = {name: tensor.add(version).to(tensor.dtype) for name, tensor in tensors.items()}
            writer.publish(version, changed)
            assert reader.newest == version
            found, read = reader.read()
            assert found == version
            assert list(read) == list(changed)
            for name, tensor in changed.items():
                assert read[name].dtype == tensor.dtype
                assert torch.equal(read[name], tensor)
    finally:
        writer.close()


def test_a_reader_sees_no_weights_before_the_first() -> None:
    writer = WeightsWriter({"weight": torch.zeros(3)})
    assert WeightsReader(os.dup(writer.descriptor)).newest < 0
    writer.close()


def test_a_gradient_or_another_layout_in_memory_does_not_matter() -> None:
    weight = torch.randn(4, 6, requires_grad=True)
    writer = WeightsWriter({"weight": weight.T})
    writer.publish(0, {"weight": weight.T})
    assert torch.equal(WeightsReader(os.dup(writer.descriptor)).read()[1]["weight"], weight.T)
    writer.close()


def test_a_reader_gets_whole_weights_from_a_writer_that_never_stops() -> None:
    writer = WeightsWriter({"weight": torch.zeros(1 << 17)})
    writer.publish(0, {"weight": torch.zeros(1 << 17)})
    reader = WeightsReader(os.dup(writer.descriptor))
    is_over = threading.Event()

    def publish() -> None:
        weight = torch.zeros(1 << 17)
        for version in range(1, 1 << 20):
            writer.publish(version, {"weight": weight.fill_(version)})
            if is_over.is_set():
                return

    thread = threading.Thread(target=publish)
    thread.start()
    seen: set[int] = set()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(seen) < 50 and time.monotonic() < deadline:
        version, read = reader.read()
        assert (read["weight"] == version).all()
        seen.add(version)
    is_over.set()
    thread.join()
    writer.close()
    assert len(seen) == 50
