"""A run that hangs is seen, its stacks are written down, and it is ended: in processes of their own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hookloop.core import HookContext, TrainingLoop
from hookloop.hooks import HeartbeatHook, WatchdogHook
from hookloop.monitoring import read_beat
from hookloop.testing import ToyWorkload
from tests.waiting import PATIENCE_SECONDS, wait_until

DEADLINE_SECONDS = 0.4

HANGING = """
import sys, threading, time
from pathlib import Path
from hookloop.core import TrainingLoop
from hookloop.hooks import HeartbeatHook, WatchdogHook
from hookloop.testing import ToyWorkload

folder, policy = Path(sys.argv[1]), sys.argv[2]

class Upload:
    def on_epoch_end(self, epoch):
        if epoch == 3:
            (folder / "hangs").write_text(str(time.time()))
            wait_for_a_server_that_is_gone()

def wait_for_a_server_that_is_gone():
    # To be asked to stop, it comes back once the watchdog has said everything.
    while policy != "stop" or loop.state.stop is None:
        time.sleep(0.01)

def idle_beside_it():
    time.sleep(600)

threading.Thread(target=idle_beside_it, daemon=True).start()
hooks = [Upload(), HeartbeatHook(folder / "heartbeat.json", interval_seconds=0.05)]
if policy != "none":
    hooks.append(WatchdogHook({"hook:Upload": float(sys.argv[3])}, policy, folder / "run.log"))
loop = TrainingLoop(ToyWorkload(5), hooks, second_signal="exit")
result = loop.run()
print(result.outcome, "|", result.stop.by, "|", result.stop.reason)
"""


@contextmanager
def hanging_run(folder: Path, policy: str) -> Generator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", HANGING, str(folder), policy, str(DEADLINE_SECONDS)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(path: Path) -> str:
    wait_until(lambda: path.exists() and path.read_text(), f"{path} was not written")
    return path.read_text()


def seconds_until_aborted(folder: Path) -> float:
    """Have a run hang and be aborted, look at all it leaves, and return how long that took."""
    folder.mkdir()
    with hanging_run(folder, "abort") as process:
        hung_at = float(wait_for(folder / "hangs"))
        _, errors = process.communicate(timeout=PATIENCE_SECONDS)
        ended_at = time.time()

    written = (folder / "run.log").read_text()
    assert process.returncode == 70
    assert "wait_for_a_server_that_is_gone" in written
    assert "idle_beside_it" in written
    assert re.search(r"hook 'Upload' at epoch_end has taken \d+\.\d s; the deadline of 'hook:Upload' is 0.4 s", written)
    assert "exit code 70" in errors
    return ended_at - hung_at


def test_a_hook_that_hangs_is_aborted_with_all_stacks_within_a_second_of_its_deadline(tmp_path: Path) -> None:
    tries = (seconds_until_aborted(tmp_path / str(number)) for number in range(5))  # the machine may be kept busy

    assert any(seconds < DEADLINE_SECONDS + 1.0 for seconds in tries)


def test_a_hook_that_was_too_slow_makes_the_run_stop_at_the_next_safe_point(tmp_path: Path) -> None:
    with hanging_run(tmp_path, "stop") as process:
        output, _ = process.communicate(timeout=PATIENCE_SECONDS)

    assert process.returncode == 0
    assert output.startswith("stopped | WatchdogHook | hook 'Upload' at epoch_end has taken")
    assert "wait_for_a_server_that_is_gone" in (tmp_path / "run.log").read_text()
    assert read_beat(tmp_path / "heartbeat.json").clocks["epochs"] == 3


def stacks_of_a_killed_run(folder: Path) -> str:
    """Have the command watch a run that hangs, look at what it says and does, and return the stacks it got."""
    folder.mkdir()
    beat = folder / "heartbeat.json"
    with hanging_run(folder, "none") as process:
        wait_until(lambda: beat.exists() and "Upload" in read_beat(beat).words)
        watched = subprocess.run(
            [sys.executable, "-m", "hookloop", "watchdog", str(beat), "--timeout", "0.5", "--policy", "kill",
             "--grace", "0.3"],
            capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS,
        )  # fmt: skip
        process.wait(timeout=PATIENCE_SECONDS)

    assert watched.returncode == 70, watched.stderr
    assert process.returncode == -signal.SIGKILL  # SIGTERM waits for a safe point, which never comes
    assert "in epoch, hook 'Upload' at epoch_end" in watched.stdout
    assert "sent SIGTERM" in watched.stdout
    return (folder / "stacks.log").read_text()


def test_the_watchdog_command_names_what_a_run_hangs_in_and_kills_it(tmp_path: Path) -> None:
    # A process that does not get its turn for a second is killed before it has written them.
    tries = (stacks_of_a_killed_run(tmp_path / str(number)) for number in range(5))

    assert any("wait_for_a_server_that_is_gone" in stacks for stacks in tries)


def test_a_process_that_is_stopped_counts_as_hung_although_nothing_in_it_can_say_so(tmp_path: Path) -> None:
    with hanging_run(tmp_path, "warn") as process:
        wait_for(tmp_path / "hangs")
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(1.0)
        watched = subprocess.run(
            [sys.executable, "-m", "hookloop", "watchdog", str(tmp_path / "heartbeat.json"), "--timeout", "0.5",
             "--once"],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip

    assert watched.returncode == 70
    assert "has not beaten for" in watched.stdout


def test_the_heart_beats_on_while_the_main_thread_is_busy(tmp_path: Path) -> None:
    beats: set[float] = set()

    def busy(ctx: HookContext) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        while len(beats) < 5 and time.monotonic() < until:  # without ever letting go
            beats.add(read_beat(tmp_path / "heartbeat.json").monotonic)

    loop = TrainingLoop(ToyWorkload(1), [HeartbeatHook(tmp_path / "heartbeat.json", 0.05)], watch_signals=False)
    loop.hooks.add(busy, on="epoch_end")
    loop.run()

    assert len(beats) >= 5


def test_many_quick_calls_of_a_hook_and_of_a_pair_that_does_not_run_never_look_like_a_long_one(tmp_path: Path) -> None:
    class Pair:
        def should_run(self, context: HookContext) -> bool:
            time.sleep(0.002)
            return False

        def run(self, context: HookContext) -> None: ...

    def overdue(number: int) -> bool:
        log_file = tmp_path / f"{number}.log"
        dog = WatchdogHook({"hook": 0.3}, log_file=log_file)
        loop = TrainingLoop(ToyWorkload(20), [Pair(), dog], watch_signals=False)
        loop.hooks.add(lambda: time.sleep(0.002), on="minibatch_end", name="quick")
        loop.run()
        assert log_file.exists() == bool(dog.overdue)
        return bool(dog.overdue)

    assert not all(overdue(number) for number in range(5))  # a machine that stands still makes any call a long one


@pytest.mark.parametrize("phase", ["rollout", "train", "evaluation", "start-up", "epoch"])
def test_every_phase_has_a_deadline(tmp_path: Path, phase: str) -> None:
    events = {"rollout": "step_end", "train": "minibatch_end", "evaluation": "evaluation_start",
              "start-up": "training_start", "epoch": "epoch_end"}  # fmt: skip
    calls: list[int] = []

    def slow() -> None:
        calls.append(1)
        if len(calls) == 1:
            wait_until(lambda: dog.overdue)

    def evaluate(ctx: HookContext) -> None:
        assert ctx.loop is not None
        with ctx.loop.evaluation():
            pass

    dog = WatchdogHook({phase: 0.1}, log_file=tmp_path / "run.log")
    loop = TrainingLoop(ToyWorkload(1), [dog], watch_signals=False)
    loop.hooks.add(evaluate, on="train_phase_end")
    loop.hooks.add(slow, on=events[phase])

    loop.run()

    assert {late.kind for late in dog.overdue} == {phase}
    assert dog.overdue[0].seconds >= 0.1
    assert f"phase {phase!r} has taken" in (tmp_path / "run.log").read_text()
