"""The lock of a run, proved with real processes: one winner, a holder by name, no lock held by the dead."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hookloop.errors import RunLockedError
from hookloop.storage.lock import RunLock

Start = Callable[..., "subprocess.Popen[str]"]

TRY = """
import sys
from pathlib import Path
from hookloop.errors import RunLockedError
from hookloop.storage.lock import RunLock

lock = RunLock(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
try:
    lock.acquire()
except RunLockedError as error:
    print("refused:", error, flush=True)
else:
    print("holds", flush=True)
    sys.stdin.readline()
"""

HOLD_WITH_A_FORKED_CHILD = """
import os, sys, time
from pathlib import Path
from hookloop.storage.lock import RunLock

lock = RunLock(Path(sys.argv[1]))
lock.acquire()
child = os.fork()
if child == 0:
    lock.release()  # the child's copy, which is none
    time.sleep(60)
print(child, flush=True)
time.sleep(60)
"""

HOLD_WITH_A_STARTED_PROGRAM = """
import subprocess, sys, time
from pathlib import Path
from hookloop.storage.lock import RunLock

lock = RunLock(Path(sys.argv[1]))
lock.acquire()
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], close_fds=False)
print(child.pid, flush=True)
time.sleep(60)
"""


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def start_program(program: str, folder: Path, *more: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(folder), *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start_program
    for process in started:
        process.kill()
        process.communicate()


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def write_line(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def refusal_of(folder: Path) -> str:
    with pytest.raises(RunLockedError) as caught:
        RunLock(folder).acquire()
    return str(caught.value)


# Holding


def test_the_folder_is_made_and_the_lock_can_be_taken_again_after_its_release(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "one"

    for _ in range(3):
        with RunLock(folder):
            assert (folder / "lock").is_file()

    assert (folder / "lock").is_file()


def test_a_lock_may_be_released_twice_or_without_being_held(tmp_path: Path) -> None:
    lock = RunLock(tmp_path)

    lock.release()
    lock.acquire()
    lock.release()
    lock.release()

    with RunLock(tmp_path):
        pass


def test_a_lock_is_released_when_its_block_raises(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), RunLock(tmp_path):
        raise ZeroDivisionError

    with RunLock(tmp_path):
        pass


def test_a_second_lock_of_the_same_process_is_refused_and_the_first_stays(tmp_path: Path) -> None:
    with RunLock(tmp_path) as lock:
        assert f"process {os.getpid()}" in refusal_of(tmp_path)
        with pytest.raises(RunLockedError):
            lock.acquire()
        assert f"process {os.getpid()}" in refusal_of(tmp_path)

    with RunLock(tmp_path):
        pass


def test_two_folders_have_two_locks(tmp_path: Path) -> None:
    with RunLock(tmp_path / "one"), RunLock(tmp_path / "two"):
        pass


def test_the_lock_file_is_not_followed_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("content")
    (tmp_path / "lock").symlink_to(tmp_path / "precious")

    with pytest.raises(OSError, match="lock"):
        RunLock(tmp_path).acquire()

    assert (tmp_path / "precious").read_text() == "content"


# Processes


def test_of_twenty_processes_at_once_exactly_one_gets_the_lock_and_the_others_name_it(
    tmp_path: Path, start: Start
) -> None:
    processes = [start(TRY, tmp_path) for _ in range(20)]
    assert {read_line(process) for process in processes} == {"ready"}

    for process in processes:
        write_line(process)
    answers = {process.pid: read_line(process) for process in processes}

    winners = [pid for pid, answer in answers.items() if answer == "holds"]
    assert len(winners) == 1
    refusals = [answer for pid, answer in answers.items() if pid != winners[0]]
    assert all(f"in use by process {winners[0]} on {os.uname().nodename} since 2" in answer for answer in refusals)


def test_a_killed_holder_blocks_nobody(tmp_path: Path, start: Start) -> None:
    holder = start(TRY, tmp_path)
    write_line(holder)
    assert [read_line(holder), read_line(holder)] == ["ready", "holds"]
    assert f"process {holder.pid}" in refusal_of(tmp_path)

    holder.kill()
    holder.wait()

    with RunLock(tmp_path):
        assert f"process {os.getpid()}" in refusal_of(tmp_path)


@pytest.mark.parametrize("program", [HOLD_WITH_A_FORKED_CHILD, HOLD_WITH_A_STARTED_PROGRAM])
def test_the_children_of_a_killed_holder_do_not_keep_the_lock(tmp_path: Path, start: Start, program: str) -> None:
    holder = start(program, tmp_path)
    child = int(read_line(holder))
    assert f"process {holder.pid}" in refusal_of(tmp_path)

    holder.kill()
    holder.wait()

    try:
        os.kill(child, 0)  # the child is alive
        with RunLock(tmp_path):
            pass
    finally:
        os.kill(child, signal.SIGKILL)


# The note


def test_the_note_says_who_holds_the_lock_and_goes_with_the_release(tmp_path: Path) -> None:
    with RunLock(tmp_path):
        note = json.loads((tmp_path / "lock").read_text())

    assert set(note) == {"pid", "host", "command", "since"}
    assert (note["pid"], note["host"]) == (os.getpid(), os.uname().nodename)
    assert (tmp_path / "lock").read_text() == ""


def test_a_refusal_says_which_folder_who_holds_it_and_what_to_do(tmp_path: Path) -> None:
    with RunLock(tmp_path):
        note = json.loads((tmp_path / "lock").read_text())
        message = refusal_of(tmp_path)

    assert f"The run folder {tmp_path} is in use by process {os.getpid()}" in message
    assert f"since {note['since']} (command: {note['command']})" in message
    assert "wait until that one ends, stop it, or choose another folder" in message


@pytest.mark.parametrize("note", [b"", b'{"pid": 12, "ho', b"\xff\xfe\x00", b"[1, 2]", b"[" * 4000, b"9" * 5000])
def test_a_note_that_cannot_be_read_is_no_reason_to_fail(tmp_path: Path, note: bytes) -> None:
    with RunLock(tmp_path):
        (tmp_path / "lock").write_bytes(note)

        assert "in use by a process that left no readable note of itself" in refusal_of(tmp_path)


def test_a_note_cannot_send_commands_to_the_terminal(tmp_path: Path) -> None:
    with RunLock(tmp_path):
        (tmp_path / "lock").write_text(json.dumps({"pid": 10**30, "host": "\x1b[2J", "command": ["\n" * 1000]}))
        message = refusal_of(tmp_path)

    assert "on ?[2J since ? (command:" in message
    assert message.isprintable()
    assert len(message) < 1000


def test_the_lock_is_as_good_when_an_old_note_is_longer(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text(json.dumps({"pid": 1, "command": "x" * 3000}))

    with RunLock(tmp_path):
        assert json.loads((tmp_path / "lock").read_text())["pid"] == os.getpid()
