"""What a person sees of a run: the real program in a real pseudo-terminal, wide, narrow and piped."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.terminal import Session

ENDLESS = (
    "total_env_steps=50000000",
    "stop_at_return=null",
    "env.num_envs=8",
    "checkpoints.schedule=every 1 seconds",
)


@pytest.fixture
def sessions() -> Iterator[list[Session]]:
    begun: list[Session] = []
    yield begun
    for session in begun:
        session.close()


def steps_on(text: str) -> int:
    found = re.search(r"([\d,]+) of 50,000,000 steps", text)
    return int(found[1].replace(",", "")) if found else 0


def test_a_wide_terminal_shows_a_panel_that_lives_and_ctrl_c_leaves_a_clean_terminal(
    sessions: list[Session], tmp_path: Path
) -> None:
    session = Session("train", "cartpole", *ENDLESS, "--run", "mine", width=120, height=30, cwd=tmp_path)
    sessions.append(session)
    session.wait_until(lambda: "step-0" in session.screen.text and session.screen.text.rstrip().endswith("╯"))

    middle, lines = session.screen.text, session.screen.lines
    assert not session.screen.is_cursor_shown
    assert lines[0].startswith("╭─ mine · cartpole ──")
    assert lines[0].endswith("cpu · 8 envs · 9,155 parameters ─╮")
    assert all(len(line) <= 120 for line in lines)
    for words in ("steps/s", "elapsed 0:0", "left ", "return/mean", "losses/ppo/entropy", "collect", "train", "hooks",
                  "failures     none", "running", "Ctrl-C saves and stops"):  # fmt: skip
        assert words in middle
    before = steps_on(middle)
    session.wait_until(lambda: steps_on(session.screen.text) > before > 0)

    watcher = Session("watch", "mine", width=120, height=30, cwd=tmp_path)
    sessions.append(watcher)
    watcher.wait_until(lambda: steps_on(watcher.screen.text) > before and "╯" in watcher.screen.text, meanwhile=session)
    assert watcher.screen.lines[0].startswith("╭─ mine · cartpole ──")
    assert "q leaves, and the run goes on" in watcher.screen.text
    watcher.press(b"q")
    assert watcher.end(meanwhile=session) == 0
    assert watcher.screen.is_cursor_shown
    assert session.process.poll() is None  # the run goes on

    session.press(b"\x03")
    assert session.end() == 130

    screen = session.screen
    assert screen.is_cursor_shown
    assert screen.unknown == []
    assert sum(line.startswith("╭") for line in screen.lines) == 1, screen.text
    assert "interrupted (received SIGINT)" in screen.text
    assert screen.lines[-1].startswith("  look     hookloop runs show") or screen.lines[-1] == ""
    result = json.loads((tmp_path / "runs" / "mine" / "result.json").read_text())
    assert steps_on(screen.text) == result["env_steps"]

    ended = subprocess.run(
        [sys.executable, "-m", "hookloop", "watch", "mine"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert f"step={result['env_steps']}/50000000" in ended.stdout
    assert f"return/mean={result['mean_return']:.4g} " in ended.stdout
    assert "status=interrupted" in ended.stdout


def test_a_narrow_terminal_gets_the_compact_form_and_a_signal_leaves_it_clean(
    sessions: list[Session], tmp_path: Path
) -> None:
    session = Session("train", "cartpole", *ENDLESS, "--run", "mine", width=60, height=10, cwd=tmp_path, NO_COLOR="1")
    sessions.append(session)
    session.wait_until(lambda: re.search(r"(?s)return/mean.*checkpoint", session.screen.text))

    lines = [line for line in session.screen.lines if line]
    assert all(len(line) <= 60 for line in lines)
    assert len(lines) <= 9
    assert lines[0].split() == ["mine", "·", "cartpole", "running"]
    assert re.fullmatch(r"━*─+ +\d+\.\d %", lines[1])
    assert re.fullmatch(r"[\d,]+ of 50,000,000 steps · [\d,]+ steps/s", lines[2])
    assert re.match(r"elapsed 0:0\d:\d\d · left ", lines[3])

    session.process.send_signal(signal.SIGTERM)
    assert session.end() == 143
    assert session.screen.is_cursor_shown
    assert "interrupted (received SIGTERM)" in session.screen.text


def test_leaving_at_once_shows_the_cursor_again(sessions: list[Session], tmp_path: Path) -> None:
    long_epoch = ("trainer.horizon=30000", "trainer.num_minibatches=1")  # one that Ctrl-C would have to wait for
    session = Session("train", "cartpole", *ENDLESS, *long_epoch, width=80, height=24, cwd=tmp_path)
    sessions.append(session)
    session.wait_until(lambda: not session.screen.is_cursor_shown and steps_on(session.screen.text) > 0)

    session.press(b"\x03")
    pressed, pause = time.monotonic(), 0.3
    while session.read(0.02):
        if time.monotonic() - pressed > pause:  # two at once would be one, as to a program that has not got its turn
            session.press(b"\x03")
            pressed, pause = time.monotonic(), 5.0

    assert session.end() == 130
    assert session.screen.is_cursor_shown


def test_piped_output_is_one_stable_line_per_interval(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "hookloop", "train", "cartpole", *ENDLESS]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(2)]
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()

    assert process.returncode == 130
    assert "interrupted (received SIGINT)" in rest
    for line in lines:
        assert re.fullmatch(
            r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ step=\d+/50000000 epoch=\d+ sps=\d+ eta=\d+ hooks=[\d.]+% "
            r"return/mean=\S+ episode/length=\S+( losses/ppo/\w+=\S+)+\n",
            line,
        )
