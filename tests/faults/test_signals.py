"""Ctrl-C and a polite kill: once ends the run at the next safe point, twice at once; both can be gone on from."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hookloop.checkpoints.manifest import MANIFEST
from hookloop.core import HookContext
from hookloop.storage.disk import LocalDisk
from tests.faults.endings import Ending, require_same
from tests.faults.forked_commands import (
    NEW,
    RESUME,
    SETTINGS,
    Gate,
    checkpoints,
    end_of,
    finished,
    hookloop,
    signalled_after_a_checkpoint,
)
from tests.faults.processes import warm_up
from tests.waiting import PATIENCE_SECONDS

SIGNALS = [signal.SIGINT, signal.SIGTERM]
PHASES = ["rollout", "training", "hook", "evaluation", "write", "save"]
IN_EVERY_PHASE = [
    # Both are taken by the same lines: the short version sends one in each phase, in turn.
    pytest.param(phase, number, marks=[] if (place + which) % 2 == 0 else pytest.mark.faults)
    for place, phase in enumerate(PHASES)
    for which, number in enumerate(SIGNALS)
]
AT_ONCE_SECONDS = 0.5


class Signaller:
    """Sends its own process a signal in one phase of the third epoch, once; then stays there, if it is to.

    In the phases ``save`` and ``write`` it is the second checkpoint, that of the fourth epoch.
    In the phase ``write`` the disk does it: call ``take_the_disk`` in the process that trains.
    """

    name = "signaller"

    def __init__(self, phase: str = "", number: int = 0, *, stays: Gate | None = None) -> None:
        self._phase = phase
        self._number = number
        self._stays = stays
        self._epoch = 0

    def on_epoch_start(self, ctx: HookContext) -> None:
        self._epoch = ctx.state.epoch + 1

    def on_step_end(self) -> None:
        self._reach("rollout")

    def on_minibatch_end(self) -> None:
        self._reach("training")

    def on_epoch_end(self, ctx: HookContext) -> None:
        assert ctx.loop is not None
        with ctx.loop.evaluation():
            self._reach("evaluation")
        self._reach("hook")

    def state_dict(self) -> dict[str, Any]:
        self._reach("save", epoch=4)
        return {}

    def load_state_dict(self, _saved: dict[str, Any]) -> None:
        self._reach("resume", epoch=0)

    def take_the_disk(self) -> None:
        flush = LocalDisk.flush
        whole: set[Path] = set()

        def flush_and_signal(disk: LocalDisk, path: Path) -> None:
            if whole:  # the second checkpoint: one before it is there
                self._reach("write", epoch=0)
            flush(disk, path)
            whole.update([path.parent] if path.name == MANIFEST else [])

        LocalDisk.flush = flush_and_signal  # in a forked child, which trains once and ends

    def _reach(self, phase: str, epoch: int = 3) -> None:
        if phase != self._phase or self._epoch < epoch:
            return
        self._phase = ""
        os.kill(os.getpid(), self._number)
        if self._stays is not None:
            self._stays.open()
            threading.Event().wait(600)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Ending:
    """The end of a run that nobody interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    finished(*NEW, cwd=folder, hook=Signaller())
    return end_of(folder)


@pytest.fixture(scope="module", autouse=True)
def everything_is_imported(tmp_path_factory: pytest.TempPathFactory) -> None:
    from hookloop.cli.main import run

    folder = str(tmp_path_factory.mktemp("warm"))
    warm_up(lambda: run([*NEW, "--runs-dir", folder]))


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.close()


@pytest.mark.parametrize(("phase", "number"), IN_EVERY_PHASE)
def test_one_signal_saves_the_run_and_a_resume_ends_as_if_there_had_been_none(
    phase: str, number: int, whole: Ending, tmp_path: Path
) -> None:
    signaller = Signaller(phase, number)

    child = hookloop(*NEW, cwd=tmp_path, hook=signaller, prepare=signaller.take_the_disk)

    assert child.code() == 128 + number, child.output
    assert "go on    hookloop train --resume runs/mine" in child.output
    first, *_, last = checkpoints(tmp_path).sound()
    assert first.manifest.epochs == 2
    assert last.manifest.epochs >= 3
    finished(*RESUME, cwd=tmp_path, hook=Signaller())
    require_same(end_of(tmp_path), whole)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_in_a_resume_leaves_what_it_was_resumed_from(number: int, whole: Ending, tmp_path: Path) -> None:
    finished(*NEW, cwd=tmp_path, hook=Signaller("hook", signal.SIGINT), code=130)
    before = checkpoints(tmp_path).latest()

    finished(*RESUME, cwd=tmp_path, hook=Signaller("resume", number), code=128 + number)

    assert checkpoints(tmp_path).latest() == before
    finished(*RESUME, cwd=tmp_path, hook=Signaller())
    require_same(end_of(tmp_path), whole)


@pytest.mark.parametrize(("phase", "number"), [each for each in IN_EVERY_PHASE if each.values[0] in PHASES[::2]])
def test_a_second_signal_ends_the_process_at_once_and_the_run_can_be_resumed(
    phase: str, number: int, whole: Ending, gate: Gate, tmp_path: Path
) -> None:
    def seconds_to_end(folder: Path) -> float:
        signaller = Signaller(phase, number, stays=gate)
        writes_in_a_thread = f"checkpoints.asynchronous={phase == 'write'}"
        child = hookloop(*NEW, writes_in_a_thread, cwd=folder, hook=signaller, prepare=signaller.take_the_disk)
        gate.wait()
        assert not child.ends_within(0.1)  # one signal lets it finish what it is at
        sent = time.monotonic()
        child.signal(number)
        assert child.ends_within(PATIENCE_SECONDS)
        taken = time.monotonic() - sent
        assert child.code() == 128 + number, child.output
        return taken

    folders = [tmp_path / str(attempt) for attempt in range(5)]  # the machine may be kept busy
    ended = next(folder for folder in folders if seconds_to_end(folder) <= AT_ONCE_SECONDS)

    assert checkpoints(ended).latest().manifest.epochs == 2
    finished(*RESUME, cwd=ended, hook=Signaller())
    require_same(end_of(ended), whole)


@pytest.mark.parametrize("instants", [6, pytest.param(100, marks=[pytest.mark.faults, pytest.mark.timeout(900)])])
def test_signals_and_kills_at_random_instants_never_cost_the_run(
    instants: int, whole: Ending, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(8)
    codes: dict[int, int] = {}
    for instant in range(instants):
        folder, number = tmp_path / str(instant), [*SIGNALS, signal.SIGKILL][instant % 3]
        folder.mkdir()
        child = hookloop(*NEW, cwd=folder, hook=Signaller())
        if not child.ends_within(chance.uniform(0, 0.3)):
            child.signal(number)

        # 0: it was done before; minus the signal: it was killed, or had not yet got to where it takes signals.
        assert child.code() in (0, 128 + number, -number), child.output
        codes[child.code()] = codes.get(child.code(), 0) + 1
        has_begun = (folder / "runs" / "mine" / "config.json").exists()
        finished(*(RESUME if has_begun else NEW), cwd=folder, hook=Signaller())
        require_same(end_of(folder), whole)
    with capsys.disabled():
        print(f"\nexit codes of {instants} runs signalled at random: {codes}", end="")  # noqa: T201  # for the record
    assert codes.get(0, 0) < instants // 2


def test_the_installed_command_is_interrupted_killed_politely_and_gone_on_with(tmp_path: Path) -> None:
    """The one test that pays for starting Python and torch anew each time, as a person does."""
    longer = (*SETTINGS[1:-1], "total_env_steps=10000", "checkpoints.schedule=every 20 epochs")
    new = ("train", "cartpole", *longer, "--run", "mine", "--display", "off")

    codes: dict[Path, tuple[int, int]] = {}
    for attempt in range(5):  # one that was at its end before it was signalled proves nothing
        codes[tmp_path / str(attempt)] = _codes_of_two_signals(new, tmp_path / str(attempt))
        if (130, 143) in codes.values():
            break
    signalled, found = codes.popitem()
    assert found == (130, 143), codes
    finished(*RESUME, cwd=signalled)

    (tmp_path / "whole").mkdir()
    finished(*new, cwd=tmp_path / "whole")
    require_same(end_of(signalled), end_of(tmp_path / "whole"))


def _codes_of_two_signals(new: tuple[str, ...], cwd: Path) -> tuple[int, int]:
    """Start the command and interrupt it, then go on and kill it politely."""
    cwd.mkdir()
    first = signalled_after_a_checkpoint(new, signal.SIGINT, cwd)
    if first != 130:
        return first, 0
    interrupted = checkpoints(cwd).latest()
    second = signalled_after_a_checkpoint(RESUME, signal.SIGTERM, cwd)
    assert 0 < interrupted.step < checkpoints(cwd).latest().step < 10000 or second != 143
    return first, second
