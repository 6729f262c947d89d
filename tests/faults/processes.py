"""Processes to be killed: forked from this one, which has imported everything already, or started as a command."""

from __future__ import annotations

import gc
import logging
import os
import select
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil

from tests.waiting import PATIENCE_SECONDS, wait_until

CRASHED = 99

started: list[int] = []
"""The process groups of all children since the last look; ``require_none_left`` takes them."""


class Child:
    """A process of its own group; what it prints goes to a file.

    It holds the writing end of a pipe open, so that its end is an event one can wait for.
    """

    def __init__(self, pid: int, pipe: int, output: Path) -> None:
        self.pid = pid
        self._pipe = pipe
        self._output = output
        self._code: int | None = None
        started.append(pid)

    @property
    def output(self) -> str:
        """What it has printed so far, to both outputs."""
        return self._output.read_text()

    def ends_within(self, seconds: float) -> bool:
        """Wait for its end, but not longer than this."""
        return self._code is not None or bool(select.select([self._pipe], [], [], max(seconds, 0.0))[0])

    def signal(self, number: int) -> None:
        """Send it a signal; nothing happens if it has ended."""
        if self._code is None:
            os.kill(self.pid, number)  # not reaped yet, so the number cannot be another's

    def code(self, seconds: float = PATIENCE_SECONDS) -> int:
        """Wait for its end and return its exit code; -9 if it was killed."""
        if self._code is None:
            if not self.ends_within(seconds):
                self.signal(signal.SIGKILL)
                os.waitpid(self.pid, 0)
                raise AssertionError(f"The process did not end within {seconds} s; it printed:\n{self.output}")
            self._code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            os.close(self._pipe)
        return self._code

    def kill(self) -> bool:
        """Kill it and tell whether that came before its end."""
        self.signal(signal.SIGKILL)
        return self.code() == -signal.SIGKILL


def fork(work: Callable[[], int | None], output: Path, *, cwd: Path | None = None) -> Child:
    """Let a copy of this process do some work and end; its code is what the work returns."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        # Newer Pythons warn of threads beside a fork. The child waits for none of theirs.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        os.close(reader)
        _work_and_end(work, writer, output, cwd)
    os.close(writer)
    return Child(pid, reader, output)


def command(*arguments: str, output: Path, cwd: Path, environment: Mapping[str, str] | None = None) -> Child:
    """Start a program of Python."""

    def become() -> None:
        os.execve(sys.executable, [sys.executable, *arguments], {**os.environ, **(environment or {})})

    return fork(become, output, cwd=cwd)


def warm_up(*works: Callable[[], object]) -> None:
    """Do in this process once what children will do, so that they find it imported, and fork fast."""
    for work in works:
        work()
    gc.collect()
    gc.freeze()  # a collection in a child would touch, and so copy, every page


def require_none_left() -> None:
    """Require that of all children and theirs nothing runs any more."""
    for group in started:  # the end of an orphan is told to nobody here
        wait_until(lambda group=group: not _has_members(group), f"a process of the group {group} is left")
    started.clear()


def _has_members(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    # An orphan that has ended stays listed until the first process of the machine takes note of it.
    return any(_is_running_in(group, process) for process in psutil.process_iter())


def _is_running_in(group: int, process: psutil.Process) -> bool:
    try:
        return os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE
    except (ProcessLookupError, psutil.NoSuchProcess):
        return False


def _work_and_end(work: Callable[[], int | None], writer: int, output: Path, cwd: Path | None) -> None:
    """Work as a process that was never a test; whatever happens, do not return into the parent's code."""
    code = CRASHED
    try:
        _leave_the_tests(output, cwd)
        os.set_inheritable(writer, True)
        code = work() or 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0
    finally:
        if code == CRASHED:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _leave_the_tests(output: Path, cwd: Path | None) -> None:
    os.setpgid(0, 0)
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
    logging.getLogger().handlers.clear()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if cwd is not None:
        os.chdir(cwd)
