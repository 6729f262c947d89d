"""The game of a run as another process sees it: as old as it is, and whatever stands in its file, watching goes on."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from hookloop.boards import Board, GameSnapshot, GameView, Move, Square, snapshot_bytes
from hookloop.cli.main import run
from hookloop.display import LiveDisplay, RunView, draw
from hookloop.monitoring import Heartbeat
from hookloop.runs.folder import RunConfig, RunFolder
from hookloop.runs.watched_run import WatchedRun
from hookloop.testing import ManualClock

BOARD = Board(tuple((Square(".", "·"), Square("X", "●", 0)) for _ in range(2)), last=frozenset({(0, 1)}))
VIEW = GameView(
    game="connect_four",
    board=BOARD,
    seats=("X", "O"),
    moves=(Move(1, 0, "x1"),),
    tally={"first_wins": 3, "second_wins": 1},
    buffered=(16, 64),
)
ESCAPES = "\x1b[2J\x1b]0;owned\x07"


class Played:
    """The folder of a run that plays, and the process that writes to it; both by one clock."""

    def __init__(self, path: Path) -> None:
        self.clock = ManualClock()
        self.folder = RunFolder(path / "mine")
        self.folder.write_config(RunConfig("connect4", 0, 1, {"total_env_steps": 10_000}, workload="selfplay"))
        self.heart = Heartbeat(self.folder.heartbeat_file, 5.0)
        self.heart.beat()
        self.watched = WatchedRun(self.folder, wall=self.now)
        self.clock.advance(1000)

    def now(self) -> float:
        return self.clock() / 1e9

    def write(self, status: str = "running", *, ahead_seconds: float = 0.0) -> None:
        snapshot = GameSnapshot(view=VIEW, wall_time=self.now() + ahead_seconds, status=status)
        self.folder.game_file.write_bytes(snapshot_bytes(snapshot))

    def write_changed(self, old: str, new: str) -> None:
        """Write what somebody else has changed."""
        self.write()
        content = self.folder.game_file.read_text(encoding="utf-8")
        assert old in content
        self.folder.game_file.write_text(content.replace(old, new), encoding="utf-8")

    def seen(self) -> RunView:
        return self.watched.view()

    def watch(self, *words: str) -> int:
        return run(["watch", "mine", *words, "--once", "--runs-dir", str(self.folder.path.parent)])


@pytest.fixture
def played(tmp_path: Path) -> Played:
    return Played(tmp_path)


@pytest.mark.parametrize(("width", "height"), [(138, 40), (118, 25), (78, 24)])
def test_the_board_is_shown_and_after_a_few_seconds_how_old_it_is(played: Played, width: int, height: int) -> None:
    played.write()
    fresh = draw(played.seen(), width, height).text
    played.clock.advance(4)
    still = draw(played.seen(), width, height).text
    played.clock.advance(10)
    old = draw(played.seen(), width, height).text
    played.clock.advance(100)
    older = draw(played.seen(), width, height).text

    for text in (fresh, still, old, older):
        assert "·[●]" in text
        assert "1 x1" in text
        assert "X wins" in text
        assert "16/64" in text
    assert "ago" not in fresh + still
    assert "board of 14 s ago" in old
    assert "board of 0:01:54 ago" in older


def test_a_new_position_is_young_again(played: Played) -> None:
    played.write()
    played.clock.advance(60)
    assert played.seen().game_age_seconds == 60
    played.write()

    assert played.seen().game_age_seconds == 0


def test_the_age_runs_on_between_two_looks(played: Played) -> None:
    played.write()
    view = played.seen()

    assert view.ticked(7.0).game_age_seconds == 7
    assert replace(view, game_age_seconds=None).ticked(7.0).game_age_seconds is None


def test_a_clock_that_is_ahead_makes_no_board_young_for_ever(played: Played) -> None:
    played.write(ahead_seconds=3600)
    assert played.seen().game_age_seconds == 0
    played.clock.advance(30)

    assert played.seen().game_age_seconds == 30


def test_the_last_position_of_a_run_that_has_ended_has_no_age(played: Played) -> None:
    played.write("completed")
    played.heart.beat("completed")
    played.clock.advance(86_400)

    view = played.seen()

    assert (view.status, view.game, view.game_age_seconds) == ("completed", VIEW, None)


def test_the_end_of_an_earlier_attempt_is_old_once_the_run_goes_on(played: Played) -> None:
    played.write("interrupted")
    played.clock.advance(20)

    assert played.seen().game_age_seconds == 20


def test_a_killed_run_keeps_its_board_with_its_age(played: Played) -> None:
    played.write()
    beat = json.loads(played.folder.heartbeat_file.read_text())
    played.folder.heartbeat_file.write_text(json.dumps({**beat, "pid": 2**22 - 1}))
    played.clock.advance(42)

    view = played.seen()

    assert (view.status, view.game, view.game_age_seconds) == ("gone", VIEW, 42)
    assert "board of 42 s ago" in draw(view, 118, 25).text


FAULTS = {
    "missing": ("", "the run has written no game.json yet"),
    "empty": ("", "game.json cannot be shown: it is no JSON"),
    "newer": ('{"version": 2, "boards": []}', "it is from a newer hookloop (version 2; this one reads 1)"),
    "hostile": (json.dumps({"version": 1, "view": {"game": ESCAPES, "board": {}}, "wall_time": 1}), "view.game should"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("width", "height"), [(138, 40), (78, 24), (60, 12)])
def test_without_a_board_one_line_says_why_and_the_rest_is_shown(
    played: Played, fault: str, width: int, height: int
) -> None:
    content, words = FAULTS[fault]
    if fault != "missing":
        played.folder.game_file.write_text(content)

    view = played.seen()
    lines = draw(view, width, height).text.splitlines()

    assert view.game is None
    assert words in view.game_fault
    assert sum("no board: " in line for line in lines) == 1
    assert "of 10,000 steps" in "\n".join(lines)


@pytest.mark.parametrize("words", [(), ("--json",)])
@pytest.mark.parametrize("fault", FAULTS)
def test_without_a_board_a_line_says_so(
    played: Played, fault: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    content, complaint = FAULTS[fault]
    if fault != "missing":
        played.folder.game_file.write_text(content)

    assert played.watch(*words) == 0

    (line,) = capsys.readouterr().out.splitlines()
    assert line.isprintable()
    if words:
        assert json.loads(line)["game"] is None
        assert complaint in json.loads(line)["game_fault"]
    else:
        assert complaint in line.partition(' game="none: ')[2]


@pytest.mark.parametrize("place", ["connect_four", "●", "x1", '"X"', "first_wins", "running"])
@pytest.mark.parametrize("glyphs", ["letters", "escaped letters"])
def test_a_file_that_would_steer_the_terminal_steers_nothing(played: Played, place: str, glyphs: str) -> None:
    bad = ESCAPES if glyphs == "letters" else json.dumps(ESCAPES)[1:-1]
    played.write_changed(place, f'"{bad}"' if place == '"X"' else bad)
    console = Console(file=io.StringIO(), force_terminal=True, width=120, height=30)
    display = LiveDisplay(console)
    display.publish(played.seen())
    display.start()
    display.stop()

    written = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO
    assert "no board: game.json cannot be shown" in written
    assert "\x1b[2J" not in written
    assert "\x1b]" not in written
    assert "\x07" not in written


def test_json_has_the_game_as_its_file_has_it(played: Played, capsys: pytest.CaptureFixture[str]) -> None:
    played.write()

    assert played.watch("--json") == 0

    found = json.loads(capsys.readouterr().out)["game"]
    written = json.loads(played.folder.game_file.read_text(encoding="utf-8"))["view"]
    assert found.pop("age_seconds") > 1e6  # the clock of this test began in 1970
    assert found == written


def test_a_run_that_plays_nothing_is_not_asked_for_a_board(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "mine")
    folder.write_config(RunConfig("cartpole", 0, 1, {}))
    folder.game_file.write_bytes(snapshot_bytes(GameSnapshot(view=VIEW, wall_time=0.0)))

    view = WatchedRun(folder).view()

    assert (view.game, view.game_fault) == (None, "")


def test_what_a_killed_process_left_of_a_snapshot_is_swept(played: Played) -> None:
    left = played.folder.path / ".game.json.0123"
    left.touch()

    played.folder.sweep()

    assert not left.exists()
