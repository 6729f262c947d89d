"""What tasks cost, measured in this process: no worker is started to find out that none is worth it."""

from __future__ import annotations

import itertools
import os
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from hookloop.pools.channel import Channel, Kind
from hookloop.pools.choice import TaskCosts
from hookloop.pools.packing import pack, unpack
from hookloop.pools.protocol import MakePerformer, Plain
from hookloop.pools.weights import WeightsReader, WeightsWriter

REPEATS = 3
"""How often everything is measured at least."""
ENOUGH_SECONDS = 0.05
"""What takes less is repeated until its fastest would fill it: a short task is easily kept waiting for longer."""
MOST_REPEATS = 30


def measure_costs(make: MakePerformer, payload: Plain, weights: Mapping[str, Tensor]) -> TaskCosts:
    """Compute a task here a few times, bring it round through a pipe, and return what each of that takes.

    Args:
        make: Makes what computes; what it makes is closed again.
        payload: Of a task like those to come.
        weights: Like those to be published.
    """
    performer = make()
    try:
        performer.take_weights(0, weights)
        value = performer.perform(payload)  # untimed: a first time builds what later ones find
        task = _fastest(lambda: performer.perform(payload))
    finally:
        performer.close()
    return TaskCosts(
        seconds=task.seconds,
        cpu_seconds=min(task.cpu_seconds, task.seconds),
        transport_seconds=_transport_seconds(payload, value),
        weights_seconds=_weights_seconds(weights),
    )


def usable_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _transport_seconds(payload: Plain, value: Plain) -> float:
    pair = socket.socketpair()
    pool, worker = (Channel(end) for end in pair)

    def go_round() -> None:
        for sender, receiver, content in ((pool, worker, payload), (worker, pool, value)):
            sender.send(Kind.TASK, 0, pack(content))
            message = receiver.receive()
            assert message is not None
            unpack(message.content)

    with pair[0], pair[1]:
        return _fastest(go_round).seconds


def _weights_seconds(weights: Mapping[str, Tensor]) -> float:
    writer = WeightsWriter(weights)
    reader = WeightsReader(os.dup(writer.descriptor))
    versions = itertools.count()

    def publish_and_take() -> None:
        writer.publish(next(versions), weights)
        reader.read()

    try:
        for _ in range(2):  # the first time in each place the memory is made
            publish_and_take()
        return _fastest(publish_and_take).seconds
    finally:
        writer.close()


class _Taken(NamedTuple):
    """What one time took; the first figure decides which was the fastest."""

    seconds: float
    cpu_seconds: float


def _fastest(work: Callable[[], object]) -> _Taken:
    """Repeat the work and return the fastest time: what others do to the machine only ever adds to one."""
    taken: list[_Taken] = []
    while len(taken) < REPEATS or (len(taken) < MOST_REPEATS and len(taken) * min(taken).seconds < ENOUGH_SECONDS):
        cpu_started = time.process_time()
        started = time.perf_counter() - _kept_waiting_seconds()
        work()
        kept_waiting = _kept_waiting_seconds()  # before the clock: a wait between the two must not make it shorter
        seconds = time.perf_counter() - kept_waiting - started
        taken.append(_Taken(seconds, time.process_time() - cpu_started))
    return min(taken)


def _kept_waiting_seconds() -> float:
    """Return how long other programs have kept this thread from a core; on a busy machine that looks like sleep."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_bytes().split()[1]) / 1e9
    except (OSError, IndexError):  # other systems do not tell
        return 0.0
