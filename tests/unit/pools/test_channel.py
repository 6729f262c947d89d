"""Messages between a pool and a worker: every plain value arrives as it was, however big."""

from __future__ import annotations

import os
import socket
from collections.abc import Generator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hookloop.pools.channel import MOST_INLINE_BYTES, Channel, Kind
from hookloop.pools.packing import pack, unpack

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=6,
)


@pytest.fixture
def ends() -> Generator[tuple[Channel, Channel]]:
    pair = socket.socketpair()
    with pair[0], pair[1]:
        yield Channel(pair[0], patience_seconds=0.1), Channel(pair[1])


def passed(value: Any, ends: tuple[Channel, Channel]) -> Any:
    ends[0].send(Kind.TASK, 5, pack(value))
    message = ends[1].receive()
    assert message is not None
    assert (message.kind, message.serial) == (Kind.TASK, 5)
    return unpack(message.content)


@given(PLAIN)
def test_plain_values_are_the_same_after_packing(value: Any) -> None:
    assert unpack(memoryview(bytearray().join(pack(value)))) == value


@pytest.mark.parametrize("count", [0, 1, MOST_INLINE_BYTES - 500, MOST_INLINE_BYTES, 3_000_000])
def test_arrays_of_every_size_arrive_and_can_be_written_to(count: int, ends: tuple[Channel, Channel]) -> None:
    files = len(os.listdir("/dev/fd"))
    sent = {"bytes": np.arange(count, dtype=np.uint8), "wide": np.arange(count // 8, dtype=np.float64)}
    found = passed(sent, ends)
    for name, array in sent.items():
        assert found[name].dtype == array.dtype
        assert np.array_equal(found[name], array)
        found[name][:1] = 0
    assert len(os.listdir("/dev/fd")) == files


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor(2.5), torch.zeros(0, 3), torch.randn(2, 3).bfloat16(), torch.tensor([True, False]),
        torch.randn(40, 600)[:, ::2], torch.randn(3, requires_grad=True), torch.arange(9000),
    ],
)  # fmt: skip
def test_tensors_arrive_with_type_and_shape(tensor: torch.Tensor, ends: tuple[Channel, Channel]) -> None:
    found = passed([tensor], ends)[0]
    assert (found.dtype, found.shape) == (tensor.dtype, tensor.shape)
    assert torch.equal(found, tensor)


def test_two_messages_that_nobody_has_read_yet_stop_nobody(ends: tuple[Channel, Channel]) -> None:
    for serial in range(2):
        ends[0].send(Kind.RESULT, serial, pack(bytes(MOST_INLINE_BYTES - 200)))
        ends[0].send(Kind.RESULT, serial, pack(np.zeros(1_000_000)))
    for serial in (0, 0, 1, 1):
        message = ends[1].receive()
        assert message is not None
        assert message.serial == serial


def test_the_end_of_the_other_side_is_seen_after_its_last_message(ends: tuple[Channel, Channel]) -> None:
    ends[1].send(Kind.READY)
    ends[1].close()
    first = ends[0].receive()
    assert first is not None
    assert first.kind == Kind.READY
    assert ends[0].receive() is None


def test_half_a_message_is_not_waited_for_for_ever() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        channel = Channel(ours, patience_seconds=0.05)
        theirs.send(b"\x03\x00")
        with pytest.raises(TimeoutError):
            channel.receive()
        theirs.send(b"\x03\x00")
        theirs.close()
        with pytest.raises(EOFError, match="before the end of a message"):
            channel.receive()
