"""A program with a pool whose workers are busy: it prints their process numbers and waits for its end.

``python -m tests.faults.pool_program WAY``: ``raises`` ends by an exception, ``waits`` polls until it is ended;
``waits-for-threads`` does that with workers that the kernel does not end, as on systems other than Linux.
"""

from __future__ import annotations

import fcntl
import itertools
import multiprocessing
import os
import sys
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from hookloop.pools import Task, TaskKey, gather
from hookloop.pools.process import ProcessPool
from hookloop.pools.serving import end_with_the_pool


class Busy:
    """Computes for ever, and hardly lets go of the interpreter."""

    def take_weights(self, version: int, tensors: Mapping[str, Tensor]) -> None:
        pass

    def perform(self, payload: Any) -> Any:
        while payload:
            sum(range(10_000_000))
        return os.getpid()

    def close(self) -> None:
        pass


def watched_by_a_thread() -> Busy:
    pool = multiprocessing.parent_process()
    assert pool is not None
    fcntl.fcntl(pool.sentinel, fcntl.F_SETFL, fcntl.fcntl(pool.sentinel, fcntl.F_GETFL) & ~os.O_ASYNC)
    end_with_the_pool(by_kernel=False)
    return Busy()


def main() -> None:
    pool = ProcessPool(watched_by_a_thread if sys.argv[1] == "waits-for-threads" else Busy, workers=2)
    pool.publish(0, {"weight": torch.zeros(1_000_000)})
    heard: set[int] = set()
    rounds = itertools.count()
    while heard != set(pool.pids):  # one that is only just starting has not said yet what Ctrl-C means to it
        step = next(rounds)
        heard |= {result.value for result in gather(pool, [Task(TaskKey(slot, step), 0) for slot in range(4)])}
    pool.submit(Task(TaskKey(0, next(rounds)), 1))  # one worker computes, the other is idle
    sys.stdout.write(" ".join(map(str, pool.pids)) + "\n")
    sys.stdout.flush()
    if sys.argv[1] == "raises":
        raise RuntimeError("on purpose")
    pool.poll()


if __name__ == "__main__":
    main()
