"""Games on a terminal: the board of a run, a person's game, what was recorded, and a page of it."""

from __future__ import annotations

import io
import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspiel", reason="OpenSpiel, the extra 'games', is not installed")

from hookloop.cli.main import run
from hookloop.runs.folder import RunFolder
from hookloop.runs.watched_run import WatchedRun
from tests.browser import running_browser, visiting
from tests.terminal import Session


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a short run of tic-tac-toe called mine."""
    folder = tmp_path_factory.mktemp("selfplay")
    small = ["game.num_envs=16", "trainer.horizon=32", "total_env_steps=1024"]
    words = ["train", "tictactoe", *small, "--run", "mine", "--display", "off"]
    assert run([*words, "--runs-dir", str(folder / "runs")]) == 0
    return folder


@pytest.fixture
def sessions() -> Iterator[list[Session]]:
    begun: list[Session] = []
    yield begun
    for session in begun:
        session.close()


def boards_on(text: str) -> int:
    return len(re.findall(r"^.*0 1 2 3 4 5 6", text, re.MULTILINE))


def test_a_run_shows_its_board_and_the_moves_go_on(sessions: list[Session], tmp_path: Path) -> None:
    endless = ("total_env_steps=50000000", "game.num_envs=8", "trainer.horizon=64", "network.hidden=[16]")
    session = Session("train", "connect4", *endless, "--run", "mine", width=120, height=30, cwd=tmp_path)
    sessions.append(session)

    def moves() -> list[str]:
        return re.findall(r"\d+ [xo]\d", session.screen.text)

    def is_whole() -> bool:
        return session.screen.text.rstrip().endswith("╯")

    session.wait_until(lambda: "losses/ppo" in session.screen.text and moves() and is_whole())

    text = session.screen.text
    assert boards_on(text) == 1
    assert re.search(r"\[[●○]\]", text), "the last move is marked"
    for words in ("O wins", "draws", "cut off", "moves a game", "buffer", "connect_four · ", "losses/ppo/value"):
        assert words in text
    before = moves()
    session.wait_until(lambda: moves() and moves() != before and is_whole())
    session.press(b"\x03")
    assert session.end() == 130
    assert session.screen.is_cursor_shown
    assert session.screen.unknown == []


def test_a_run_is_watched_with_its_board_and_one_that_is_killed_leaves_it_with_its_age(
    sessions: list[Session], tmp_path: Path
) -> None:
    endless = ("total_env_steps=50000000", "game.num_envs=8", "trainer.horizon=64", "network.hidden=[16]")
    unrated = ("evaluation.schedule=null", "--display", "off")
    trains = Session("train", "connect4", *endless, *unrated, "--run", "mine", width=80, height=24, cwd=tmp_path)
    sessions.append(trains)
    folder = RunFolder(tmp_path / "runs" / "mine")
    trains.wait_until(folder.game_file.exists)
    watcher = Session("watch", "mine", "--interval-seconds", "0.2", width=80, height=24, cwd=tmp_path)
    sessions.append(watcher)

    def moves() -> list[str]:
        return re.findall(r"\d+ [xo]\d", watcher.screen.text)

    def is_whole() -> bool:
        return boards_on(watcher.screen.text) == 1 and "an hour" in watcher.screen.text

    # A trainer that has not got its turn for a while leaves a position with an age, as one that is gone does.
    watcher.wait_until(lambda: is_whole() and len(moves()) > 1 and "ago" not in watcher.screen.text, meanwhile=trains)
    assert re.search(r"\[[●○]\]", watcher.screen.text), "the last move is marked"
    before = moves()
    watcher.wait_until(lambda: moves() and moves() != before, meanwhile=trains)

    trains.process.kill()
    trains.process.wait()
    assert watcher.end() == 0

    assert "gone (its process ended without a word)" in watcher.screen.text
    assert boards_on(watcher.screen.text) == 1
    assert watcher.screen.unknown == []
    view = WatchedRun(folder, wall=lambda: time.time() + 60).view()
    assert view.game is not None
    assert view.game.games > 0
    assert view.game_age_seconds is not None
    assert 59 < view.game_age_seconds < 120


def test_a_run_that_has_ended_shows_its_last_position_and_how_its_games_ended(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["mine", "--json", "--runs-dir", str(runs / "runs")]

    assert run(["watch", *words]) == 0
    seen = json.loads(capsys.readouterr().out)
    assert run(["runs", "show", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert run(["runs", "show", "mine", "--runs-dir", str(runs / "runs")]) == 0

    assert (seen["status"], seen["game"]["age_seconds"], found["game"]["status"]) == ("completed", None, "completed")
    view = found["game"]["view"]
    assert {**view, "age_seconds": None} == seen["game"]
    assert sum(view["tally"].values()) == found["clocks"]["episodes"] > 0
    won = f"X won {view['tally']['first_wins']}, O won {view['tally']['second_wins']}, "
    assert f"games     {found['clocks']['episodes']} of tic_tac_toe: {won}" in capsys.readouterr().out


def test_a_person_plays_a_game_to_its_end_in_a_terminal(sessions: list[Session], runs: Path) -> None:
    session = Session("play", "mine", "--seat", "first", width=80, height=60, cwd=runs)
    sessions.append(session)

    def over() -> bool:
        return re.search(r"won after \d moves\.|A draw after 9 moves\.", session.screen.text) is not None

    def asked() -> int:
        return (session.screen.text + session.prompt).count(", X> ")

    def enter(words: str) -> None:
        times = asked()
        session.press(words.encode() + b"\n")
        session.wait_until(lambda: asked() > times or over())

    session.wait_until(asked)
    enter("help")
    enter("x(9,9)")
    assert "'x(9,9)' is no legal move here. Near it: " in session.screen.text
    enter("4")
    enter("undo")
    assert re.search(r"Taken back: x\(1,1\), o\(\d,\d\)\.", session.screen.text)
    for move in "402613578":  # whichever of them are taken are refused
        if not over():
            enter(move)

    assert session.end() == 0
    assert over()
    assert len(re.findall(r"\d\. The model \(O\): o\(\d,\d\)", session.screen.text)) >= 3


def test_a_game_is_played_without_a_terminal_and_the_model_begins_where_it_is_asked_to(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{square}\n" for square in range(9)) * 2))

    assert run(["play", "mine", "--seat", "second", "--letters", "--runs-dir", str(runs / "runs")]) == 0

    said = capsys.readouterr().out
    assert said.startswith("tic_tac_toe, mine at step-000000001024-final. You are O and move second;")
    assert "1. The model (X): x(" in said
    assert re.search(r"(won after \d moves|A draw after 9 moves)\.\n$", said)


def test_a_demo_is_the_model_against_itself(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["play", "mine", "--demo", "--delay", "0", "--runs-dir", str(runs / "runs")]

    assert run(words) == 0
    first = capsys.readouterr().out
    assert run([*words, "--seed", "1"]) == 0
    other = capsys.readouterr().out

    assert re.search(r"(X|O) won after \d moves\.\n$|A draw after 9 moves\.\n$", first)
    assert first != other  # it draws its moves


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--temperature", "-1"], "--temperature must be 0 or more, got -1.0."),
        (["--demo", "--delay", "nan"], "--delay must be 0 seconds or more, got nan."),
    ],
)
def test_arguments_that_make_no_sense_are_refused(
    runs: Path, capsys: pytest.CaptureFixture[str], words: list[str], complaint: str
) -> None:
    assert run(["play", "mine", *words, "--runs-dir", str(runs / "runs")]) == 2
    assert complaint in capsys.readouterr().err


def test_without_the_library_a_game_says_what_to_install(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspiel", None)

    assert run(["play", "mine", "--runs-dir", str(runs / "runs")]) == 3
    assert "pip install 'hookloop[games]'" in capsys.readouterr().err
    assert run(["train", "selfplay", "game=othello", "--runs-dir", str(runs / "none")]) == 3
    assert not (runs / "none").exists()


def test_a_run_that_plays_no_game_says_so(tmp_path: Path, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = [
        "train",
        "cartpole",
        "total_env_steps=100",
        "--display",
        "off",
        "--run",
        "cart",
        "--runs-dir",
        str(tmp_path),
    ]
    assert run(short) == 0

    assert run(["play", "cart", "--runs-dir", str(tmp_path)]) == 2
    assert "'cart' (cartpole) plays no game of two players" in capsys.readouterr().err
    assert run(["sample", "mine", "--runs-dir", str(runs / "runs")]) == 2
    assert "'hookloop play mine' plays against it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("game", "complaint"),
    [("kuhn_poker", "has chance and secrets"), ("othelo", "Did you mean 'othello'?")],
)
def test_a_game_that_cannot_be_learned_is_refused_before_a_run_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], game: str, complaint: str
) -> None:
    assert run(["train", "selfplay", f"game={game}", "--runs-dir", str(tmp_path / "runs")]) == 2

    assert complaint in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_a_recorded_game_is_stepped_through_with_keys(
    sessions: list[Session], runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["replay", "mine", "--list", "--runs-dir", str(runs / "runs")]) == 0
    listed = capsys.readouterr().out
    assert re.search(r"training-game  tic_tac_toe, (first_win|second_win|draw), \d moves", listed)

    session = Session("replay", "mine", width=100, height=40, cwd=runs, NO_COLOR="1")
    sessions.append(session)
    session.wait_until(lambda: "step 1 of" in session.screen.text and "q: leave" in session.screen.text)
    assert re.search(r"\[X\]", session.screen.text)
    session.press(b"n")
    session.wait_until(lambda: "step 2 of" in session.screen.text and "[O]" in session.screen.text)
    session.press(b"q")
    assert session.end() == 0


def test_a_game_that_a_worker_has_played_is_recorded_and_its_lag_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ["game.num_envs=16", "trainer.horizon=32", "total_env_steps=2048", "opponents.share=0.25"]
    ahead = ["workers=1", "rollout_mode=async", "opponents.every_epochs=1"]
    words = ["train", "tictactoe", *small, *ahead, "--run", "ahead", "--display", "off"]
    assert run([*words, "--runs-dir", str(tmp_path)]) == 0
    assert run(["metrics", "ahead", "workers/lag", "opponents/score", "--csv", "--runs-dir", str(tmp_path)]) == 0
    assert {line.split(",")[0] for line in capsys.readouterr().out.splitlines()} >= {"workers/lag", "opponents/score"}

    assert run(["replay", "ahead", "--list", "--runs-dir", str(tmp_path)]) == 0
    assert re.search(r"training-game  tic_tac_toe, (first_win|second_win|draw), \d moves", capsys.readouterr().out)
    page = tmp_path / "game.html"
    assert run(["replay", "ahead", "--to", str(page), "--runs-dir", str(tmp_path)]) == 0
    assert "tic_tac_toe" in page.read_text()


def test_a_recorded_game_is_a_page_with_a_board(runs: Path, tmp_path: Path) -> None:
    page = tmp_path / "game.html"
    assert run(["replay", "mine", "--to", str(page), "--runs-dir", str(runs / "runs")]) == 0

    with running_browser() as browser, visiting(browser, page) as visit:
        shown = visit.page
        assert shown.locator("#squares td").count() == 9
        assert shown.locator("#squares td.last").text_content() == "X"
        shown.keyboard.press("ArrowRight")
        assert shown.locator("#squares td.last").text_content() == "O"
        assert shown.locator("#squares td.seat0, #squares td.seat1").count() == 2
        shown.locator("#moves button").first.click()
        assert (shown.text_content("#place") or "").startswith("step 1 of")
        shown.fill("#timeline", "4")
        assert shown.locator("#squares td.seat0, #squares td.seat1").count() == 4
        assert visit.complaints == []
