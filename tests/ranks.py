"""Real ranks: processes that meet over gloo, forked from this one or started by torchrun."""

from __future__ import annotations

import itertools
import os
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil

from hookloop.checkpoints.strict_json import parse_json
from hookloop.cli.learners import end
from hookloop.cli.main import run
from hookloop.core import Ranks
from hookloop.storage.atomic import write_json
from tests.faults.processes import Child, command, fork

RL = (
    "train", "cartpole", "total_env_steps=1500", "env.num_envs=8", "policy.hidden=[16, 16]", "trainer.horizon=16",
    "trainer.num_minibatches=2", "stop_at_return=null", "checkpoints.schedule=every 2 epochs", "--run", "mine",
)  # fmt: skip
QUIET = ("--display", "off")
RESUME = ("train", "--resume", "mine", *QUIET)
_numbers = itertools.count()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def environment(rank: int, world_size: int, port: int) -> dict[str, str]:
    """Return what torchrun tells a process, without an agent that keeps the store."""
    told = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world_size, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    return {**{name: str(value) for name, value in told.items()}, "TORCHELASTIC_RUN_ID": "test"}


def fork_ranks(world_size: int, work: Callable[[int], int | None], cwd: Path) -> list[Child]:
    """Let copies of this process work as the ranks of one run."""
    cwd.mkdir(parents=True, exist_ok=True)
    port = free_port()

    def of_rank(rank: int) -> Callable[[], int | None]:
        def act() -> int | None:
            os.environ.update(environment(rank, world_size, port))
            return work(rank)

        return act

    return [fork(of_rank(rank), cwd / f"rank{rank}-{next(_numbers)}.txt", cwd=cwd) for rank in range(world_size)]


def run_ranks(world_size: int, act: Callable[[Ranks], Any], cwd: Path) -> list[Any]:
    """Call ``act`` on real ranks and return the plain data that each gave."""

    def work(rank: int) -> int:
        from hookloop.distributed import join_ranks, leave_ranks

        given = act(join_ranks())
        write_json(cwd / f"given-{rank}.json", given)
        leave_ranks()
        return 0

    children = fork_ranks(world_size, work, cwd)
    for child in children:
        assert child.code() == 0, child.output
    return [parse_json((cwd / f"given-{rank}.json").read_bytes(), "") for rank in range(world_size)]


def learners(*words: str, cwd: Path, world_size: int = 2, prepare: Callable[[int], None] | None = None) -> list[Child]:
    """Run the command ``hookloop`` as the ranks of one run; ``prepare`` is called in each of them first."""

    def work(rank: int) -> None:
        if prepare is not None:
            prepare(rank)
        end(run(list(words)))

    return fork_ranks(world_size, work, cwd)


def finished(*words: str, cwd: Path, world_size: int = 2, code: int = 0) -> list[str]:
    """Run the command on ranks to its end, and return what each printed."""
    children = learners(*words, cwd=cwd, world_size=world_size)
    codes = [child.code() for child in children]
    assert codes == [code] * world_size, "\n".join(child.output for child in children)
    return [child.output for child in children]


def torchrun(*words: str, cwd: Path, extra: Mapping[str, str] | None = None) -> Child:
    """Start two ranks as a user does."""
    cwd.mkdir(parents=True, exist_ok=True)
    launch = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(free_port()))
    told = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUNBUFFERED": "1", **(extra or {})}
    return command(*launch, *words, output=cwd / f"torchrun-{next(_numbers)}.txt", cwd=cwd, environment=told)


def processes_in(folder: Path) -> list[int]:
    found: list[int] = []
    for process in psutil.process_iter():
        try:
            if Path(process.cwd()) == folder and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except (psutil.AccessDenied, psutil.NoSuchProcess):
            continue
    return found
