"""The command ``hookloop``, in processes that are forked from a warm one, with a hook of a test if it needs one."""

from __future__ import annotations

import itertools
import os
import select
from collections.abc import Callable
from pathlib import Path

from hookloop.checkpoints import CheckpointStore
from hookloop.cli.main import run
from hookloop.core import HookManager
from hookloop.rl import build
from tests.faults.endings import Ending, ending
from tests.faults.processes import CRASHED, Child, command, fork
from tests.waiting import PATIENCE_SECONDS

# Seven epochs: the third is between two checkpoints, and so is the last.
SETTINGS = (
    "total_env_steps=400",
    "env.num_envs=4",
    "policy.hidden=[16, 16]",
    "trainer.horizon=16",
    "trainer.update_epochs=2",
    "trainer.num_minibatches=2",
    "stop_at_return=null",
    "checkpoints.schedule=every 2 epochs",
)
NEW = ("train", "cartpole", *SETTINGS, "--run", "mine", "--display", "off")
_numbers = itertools.count()
RESUME = ("train", "--resume", "mine", "--display", "off")


def hookloop(
    *arguments: str, cwd: Path, hook: object | None = None, prepare: Callable[[], None] | None = None
) -> Child:
    """Run the command in a process; ``hook`` is added to what it trains, ``prepare`` is called in there first."""
    outputs = cwd / "outputs"
    outputs.mkdir(exist_ok=True, parents=True)

    def work() -> int:
        if hook is not None:
            _add_to_every_trainer(hook)
        if prepare is not None:
            prepare()
        return run(list(arguments))

    return fork(work, outputs / f"{next(_numbers)}.txt", cwd=cwd)


def finished(*arguments: str, cwd: Path, hook: object | None = None, code: int = 0) -> str:
    """Run the command to its end, which must be with this code, and return what it printed."""
    child = hookloop(*arguments, cwd=cwd, hook=hook)
    assert child.code() == code, child.output
    return child.output


def signalled_after_a_checkpoint(arguments: tuple[str, ...], number: int, cwd: Path, *, in_group: bool = False) -> int:
    """Start the command as a person does, signal it once it has saved, and return its exit code.

    A machine that lets it train on while this process waits for its turn may bring it to its end, and the code to 0.
    """
    before = checkpoints(cwd).names()
    child = command("-m", "hookloop", *arguments, output=cwd / f"{number}.txt", cwd=cwd)
    while set(checkpoints(cwd).names()) <= set(before) and not child.ends_within(0.01):
        pass
    if in_group:
        os.killpg(child.pid, number)  # as a terminal does
    else:
        child.signal(number)
    assert child.code() not in (1, 2, CRASHED), child.output
    return child.code()


def checkpoints(cwd: Path, run_name: str = "mine") -> CheckpointStore:
    return CheckpointStore(cwd / "runs" / run_name / "checkpoints")


def end_of(cwd: Path) -> Ending:
    """Return how the run in a folder ended."""
    return ending(checkpoints(cwd).folder)


class Gate:
    """Something a child opens and this process waits for."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()

    def open(self) -> None:
        os.write(self._writer, b".")

    def wait(self) -> None:
        """Wait until it is opened once more."""
        assert select.select([self._reader], [], [], PATIENCE_SECONDS)[0], f"nothing came in {PATIENCE_SECONDS:g} s"
        os.read(self._reader, 1)

    def close(self) -> None:
        os.close(self._reader)
        os.close(self._writer)


def _add_to_every_trainer(hook: object) -> None:
    made = build.build_trainer

    def build_with_hook(*arguments: object, hooks: HookManager, **options: object) -> object:
        hooks.add(hook)
        return made(*arguments, hooks=hooks, **options)

    build.build_trainer = build_with_hook  # in a forked child, which trains once and ends
