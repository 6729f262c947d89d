"""The live display on a terminal of its own: what is drawn, when, and what it leaves behind."""

from __future__ import annotations

import errno
import io
import logging
import sys
from collections.abc import Generator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import pytest
from rich.console import Console

from hookloop.display import LiveDisplay, RunView, TrainingDisplay, can_draw
from hookloop.errors import DisplayError, RegistrationError
from hookloop.testing import ManualClock
from tests.screen import Screen
from tests.waiting import wait_until

WIDTH, HEIGHT = 120, 30


class Terminal(io.StringIO):
    """A file that says it is a terminal; it can break, and be slow to be looked at."""

    error: OSError | None = None

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self.error is not None:
            raise self.error
        return super().write(text)

    @property
    def screen(self) -> Screen:
        found = Screen(WIDTH, HEIGHT)
        found.write(self.getvalue())
        return found


def console_on(terminal: io.StringIO) -> Console:
    return Console(file=terminal, force_terminal=True, width=WIDTH, height=HEIGHT, color_system="standard")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    return Terminal()


@contextmanager
def in_front_of(terminal: Terminal) -> Generator[None]:
    """Have the program's output and errors go to the terminal; in the test itself, since pytest has its own."""
    with redirect_stdout(terminal), redirect_stderr(terminal):
        yield


def shown(live: LiveDisplay, view: RunView) -> None:
    number = live.publish(view)
    wait_until(lambda: live.has_drawn(number))


def test_the_newest_view_is_drawn_in_place_and_stays_when_the_display_stops(terminal: Terminal) -> None:
    live = LiveDisplay(console_on(terminal))
    live.start()
    shown(live, RunView(run="first", step=1, total_steps=10))
    assert not terminal.screen.is_cursor_shown
    shown(live, RunView(run="first", step=9, total_steps=10, status="completed"))
    live.stop()

    screen = terminal.screen
    assert screen.text.count("╭") == 1
    assert "9 of 10 steps" in screen.text
    assert "1 of 10 steps" not in screen.text
    assert screen.is_cursor_shown
    assert screen.unknown == []


def test_what_is_printed_and_logged_meanwhile_stands_above_the_panel_and_nothing_is_torn(terminal: Terminal) -> None:
    logger = logging.getLogger("tests.display")
    logger.propagate = False
    live = LiveDisplay(console_on(terminal))
    with in_front_of(terminal):
        handler = logging.StreamHandler(sys.stderr)
        logger.addHandler(handler)
        live.start()
        shown(live, RunView(run="first", step=1, total_steps=10))
        sys.stdout.write("printed by a hook\n")
        logger.warning("logged by a hook")
        shown(live, RunView(run="first", step=2, total_steps=10))
        live.stop()
        logger.warning("logged afterwards")
        logger.removeHandler(handler)
        assert sys.stdout is terminal

    lines = terminal.screen.lines
    top = next(number for number, line in enumerate(lines) if line.startswith("╭"))
    bottom = next(number for number, line in enumerate(lines) if line.startswith("╰"))
    assert lines.index("printed by a hook") < lines.index("logged by a hook") < top
    assert lines.index("logged afterwards") > bottom
    assert sum(line.startswith("╭") for line in lines) == 1
    assert handler.stream is terminal


def test_a_key_that_the_terminal_shows_does_not_tear_the_panel(terminal: Terminal) -> None:
    live = LiveDisplay(console_on(terminal))
    live.start()
    shown(live, RunView(run="first", step=1, total_steps=10))
    terminal.write("^C")  # what a terminal writes where the cursor is
    shown(live, RunView(run="first", step=2, total_steps=10))
    live.stop()

    assert terminal.screen.text.count("╭") == 1
    assert "^C" not in terminal.screen.text


def test_times_and_steps_tick_on_while_an_epoch_lasts(terminal: Terminal) -> None:
    clock, step = ManualClock(), [100]
    live = LiveDisplay(console_on(terminal), look=lambda: step[0], clock=lambda: clock() / 1e9)
    live.start()
    shown(live, RunView(step=100, total_steps=1000, elapsed_seconds=60.0, eta_seconds=120.0))
    assert "elapsed 0:01:00" in terminal.screen.text

    clock.advance(seconds=30)
    step[0] = 250
    wait_until(lambda: "elapsed 0:01:30" in terminal.screen.text)
    live.stop()

    assert "left 0:01:30" in terminal.screen.text
    assert "250 of 1,000 steps" in terminal.screen.text


def test_nothing_is_written_while_nothing_changes(terminal: Terminal) -> None:
    live = LiveDisplay(console_on(terminal))
    live.start()
    shown(live, RunView(status="completed"))
    written = len(terminal.getvalue())
    shown(live, RunView(status="completed"))
    shown(live, RunView(status="completed"))

    assert len(terminal.getvalue()) == written
    live.stop()


def test_a_terminal_that_is_gone_ends_the_display_for_good_and_says_so_to_whoever_publishes(
    terminal: Terminal, caplog: pytest.LogCaptureFixture
) -> None:
    live = LiveDisplay(console_on(terminal))
    live.start()
    shown(live, RunView(step=1))
    terminal.error = OSError(errno.EIO, "Input/output error")
    number = live.publish(RunView(step=2))
    wait_until(lambda: not live.is_running)

    assert not live.has_drawn(number)
    with pytest.raises(DisplayError, match="cannot be drawn on any more"):
        live.publish(RunView(step=3))
    terminal.error = None
    live.stop()
    live.start()
    assert not live.is_running
    assert [record.message for record in caplog.records] == [
        "the display ended, and the run goes on: [Errno 5] Input/output error"
    ]


def test_it_can_be_started_again_and_stopped_twice(terminal: Terminal) -> None:
    live = LiveDisplay(console_on(terminal))
    for _ in range(2):
        live.start()
        shown(live, RunView(run="first"))
        live.stop()
        live.stop()

    assert terminal.screen.is_cursor_shown
    assert terminal.screen.text.count("╭") == 2


def test_more_than_four_drawings_per_second_are_refused() -> None:
    with pytest.raises(RegistrationError, match="at most 4 times per second, got per_second=10"):
        LiveDisplay(per_second=10)


@pytest.mark.parametrize(("term", "file", "can"), [("xterm", Terminal, True), ("dumb", Terminal, False),
                                                   ("xterm", io.StringIO, False)])  # fmt: skip
def test_a_file_and_a_terminal_without_a_cursor_are_not_drawn_on(
    term: str, file: type[io.StringIO], can: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)

    assert can_draw(Console(file=file())) is can


class Training:
    """A training display on a terminal, under a manual clock."""

    def __init__(self, terminal: Terminal, **options: float) -> None:
        self.clock = ManualClock()
        self.terminal = terminal
        self.display = TrainingDisplay(
            RunView(run="mine"),
            console=console_on(terminal),
            clock=lambda: self.clock() / 1e9,
            **options,  # type: ignore[arg-type]
        )


def test_updates_wait_for_the_throttle_and_for_enough_steps(terminal: Terminal) -> None:
    training = Training(terminal, throttle_seconds=0.2, render_every_steps=10)
    with training.display.get_context_manager() as display:
        assert display.update_progress(0, 100)
        training.clock.advance(seconds=0.1)
        assert not display.update_progress(50, 100)  # too soon
        training.clock.advance(seconds=0.1)
        assert not display.update_progress(5, 100)  # too few steps
        assert display.update_progress(50, 100)
        assert display.update_progress(100, 100)  # the last one is always shown


def test_numbers_become_curves_and_anything_else_is_a_note(terminal: Terminal) -> None:
    training = Training(terminal)
    with training.display.get_context_manager() as display:
        display.update_progress(0, 100, loss=2.0, opponent="pool-7")
        training.clock.advance(seconds=1)
        display.update_progress(50, 100, completed_episodes=3, loss=1.0)

    text = terminal.screen.text
    assert "mine" in text
    assert "─ completed ─" in text
    assert "50 of 100 steps" in text
    assert "50 steps/s" in text
    assert "█▁" in text
    assert "opponent pool-7" in text


def test_an_error_in_the_block_gives_the_terminal_back_and_says_so(terminal: Terminal) -> None:
    training = Training(terminal)

    def train() -> None:
        with training.display.get_context_manager() as display:
            display.update_progress(1, 10)
            raise RuntimeError("engine died")

    with in_front_of(terminal):
        with pytest.raises(RuntimeError, match="engine died"):
            train()
        assert sys.stdout is terminal

    assert terminal.screen.is_cursor_shown
    assert "─ failed ─" in terminal.screen.text


def test_a_view_ticks_only_while_its_run_does() -> None:
    view = RunView(step=5, elapsed_seconds=1.0, eta_seconds=2.0)

    later = view.ticked(5.0, step=3)

    assert (later.elapsed_seconds, later.eta_seconds, later.step) == (6.0, 0.0, 5)
    ended = RunView(status="completed", elapsed_seconds=1.0)
    assert ended.ticked(99.0) is ended
