"""The ranks of a run as torch.distributed has them, on the CPU (gloo)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import PrefixStore, TCPStore  # pyright: ignore[reportPrivateImportUsage]  # documented

from hookloop.errors import ConfigError, RankLostError

T = TypeVar("T")

PATIENCE_SECONDS = 600.0
TIMEOUT_VARIABLE = "HOOKLOOP_RANK_TIMEOUT"
FRAME_BYTES = 512
"""What goes out in the first exchange of any value; only what is longer needs a second one."""
_PREFIX_BYTES = 8
_ROOM = FRAME_BYTES - _PREFIX_BYTES


class TorchRanks:
    """One process of a group: values travel as JSON or bytes, tensors as they are. Nothing is pickled.

    Args:
        rank: This process; 0 is main.
        world_size: How many there are.
    """

    def __init__(self, rank: int, world_size: int) -> None:
        self.rank = rank
        self.world_size = world_size
        self._frame = torch.zeros(FRAME_BYTES, dtype=torch.uint8)
        self._frames = [torch.zeros(FRAME_BYTES, dtype=torch.uint8) for _ in range(world_size)]

    def broadcast(self, value: T) -> T:
        """Return main's value on every rank."""
        content = _encode(value) if self.rank == 0 else b""
        _fill(self._frame, content)
        with self._waiting():
            dist.broadcast(self._frame, 0)
        size, beginning = _read(self._frame)
        if size <= _ROOM:
            return value if self.rank == 0 else _decode(beginning)
        rest = _padded(content[_ROOM:], size - _ROOM)
        with self._waiting():
            dist.broadcast(rest, 0)
        return value if self.rank == 0 else _decode(beginning + rest.numpy().tobytes())

    def gather(self, value: T) -> list[T]:
        """Return the values of all ranks, in their order, on every rank."""
        content = _encode(value)
        _fill(self._frame, content)
        with self._waiting():
            dist.all_gather(self._frames, self._frame)
        told = [_read(frame) for frame in self._frames]
        longest = max(size for size, _ in told) - _ROOM
        if longest <= 0:
            return [_decode(beginning) for _, beginning in told]
        rest = _padded(content[_ROOM:], longest)
        rests = [torch.empty_like(rest) for _ in told]
        with self._waiting():
            dist.all_gather(rests, rest)
        return [
            _decode(beginning + rest.numpy().tobytes()[: max(size - _ROOM, 0)])
            for (size, beginning), rest in zip(told, rests, strict=True)
        ]

    def average(self, tensor: Tensor) -> None:
        """Replace a tensor, in place, by its mean over all ranks: the same bits on every rank."""
        with self._waiting():
            dist.all_reduce(tensor)
        tensor /= self.world_size

    @contextmanager
    def _waiting(self) -> Generator[None]:
        try:
            yield
        except RuntimeError as error:
            raise RankLostError(
                f"Rank {self.rank} waited for the other ranks in vain: one of them has ended, or has not come for too "
                "long. Its own output says why; go on from the last checkpoint with --resume."
            ) from error


def join_ranks(environment: dict[str, str] | None = None) -> TorchRanks:
    """Meet the other processes that torchrun has started, as its environment variables say.

    The group is built here: torchrun keeps one store for all its restarts, in which a new process would find the
    addresses of dead ones, so each restart gets a corner of its own.
    """
    found = os.environ if environment is None else environment
    rank, world_size = int(found["RANK"]), int(found["WORLD_SIZE"])
    timeout = timedelta(seconds=_patience(found.get(TIMEOUT_VARIABLE)))
    is_server = found.get("TORCHELASTIC_USE_AGENT_STORE") != "True" and rank == 0
    store = TCPStore(found["MASTER_ADDR"], int(found["MASTER_PORT"]), world_size, is_server, timeout)
    corner = f"hookloop/{found.get('TORCHELASTIC_RESTART_COUNT', '0')}"
    dist.init_process_group("gloo", store=PrefixStore(corner, store), rank=rank, world_size=world_size, timeout=timeout)
    return TorchRanks(rank, world_size)


def leave_ranks() -> None:
    """Part from the others at the end of a run that went well; after a failure a process just ends."""
    dist.destroy_process_group()


def _patience(seconds: str | None) -> float:
    try:
        patience = PATIENCE_SECONDS if seconds is None else float(seconds)
    except ValueError:
        patience = 0.0
    if not patience > 0:
        raise ConfigError(f"{TIMEOUT_VARIABLE} is {seconds!r}; it takes seconds, more than 0.")
    return patience


_KINDS: dict[int, Callable[[bytes], Any]] = {ord("b"): bytes, ord("j"): json.loads}


def _encode(value: object) -> bytes:
    return b"b" + value if isinstance(value, bytes) else b"j" + json.dumps(value).encode()


def _decode(content: bytes) -> Any:
    return _KINDS[content[0]](content[1:])


def _fill(frame: Tensor, content: bytes) -> None:
    start = len(content).to_bytes(_PREFIX_BYTES, "little") + content[:_ROOM]
    frame[: len(start)] = torch.frombuffer(bytearray(start), dtype=torch.uint8)


def _read(frame: Tensor) -> tuple[int, bytes]:
    content = frame.numpy().tobytes()
    size = int.from_bytes(content[:_PREFIX_BYTES], "little")
    return size, content[_PREFIX_BYTES : _PREFIX_BYTES + size]


def _padded(content: bytes, size: int) -> Tensor:
    padded = torch.zeros(size, dtype=torch.uint8)
    if content:
        padded[: len(content)] = torch.frombuffer(bytearray(content), dtype=torch.uint8)
    return padded
