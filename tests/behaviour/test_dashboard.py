"""The dashboard as a person has it: a real server, a real browser, and runs that write while one looks."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

pytest.importorskip("starlette", reason="the dashboard is not installed: pip install 'hookloop[dashboard]'")

from hookloop.boards import Board, GameSnapshot, GameView, Hand, Move, Square, snapshot_bytes
from hookloop.cli.main import run
from hookloop.dashboard.server import DashboardServer
from hookloop.monitoring import Heartbeat
from hookloop.runs.folder import RunConfig, RunFolder
from hookloop.stats import StatsStore
from tests.browser import Visit, running_browser, visiting

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HOSTILE = "<img src=x onerror=window.isHarmed=1>"
PIECE, OTHER = Square("P", "P", 0), Square("p", "vQ", 1)
BOARD = Board(
    rows=((Square(".", "·"), OTHER), (PIECE, Square(".", "·"))),
    files=("2", "1"),
    ranks=("a", "b"),
    last=frozenset({(1, 0)}),
    hands=(Hand(0, ((PIECE, 2),)), Hand(1)),
)
VIEW = GameView(
    game="tiny_shogi",
    board=BOARD,
    seats=("Sente", "Gote"),
    moves=(Move(1, 0, "P2b"), Move(2, 1, HOSTILE)),
    tally={"first_wins": 3, "second_wins": 1},
    recent={"first_wins": 1, "second_wins": 1},
    material=(4, 3),
    statistics={"first_captures": 2.0, "second_captures": 1.0, "looked_at": 2},
)


class Playing:
    """A run that plays, and the process that writes it."""

    def __init__(self, path: Path) -> None:
        self.folder = RunFolder(path)
        config = RunConfig("shogi", 0, 1, {"total_env_steps": 1000}, workload="selfplay")
        self.folder.write_config(config)
        self.epoch = 0
        self.heart = Heartbeat(self.folder.heartbeat_file, 5.0, look=lambda: {"clocks": self.clocks})
        self.store = StatsStore(self.folder.stats_file, run_id=config.run_id)
        self.store.begin_attempt(1, {"epochs": 0}, name=path.name, recipe="shogi", seed=0)
        self.go_on()
        self.go_on()
        self.show(VIEW)

    @property
    def clocks(self) -> dict[str, float]:
        return {"epochs": self.epoch, "env_steps": 100 * self.epoch, "optimizer_steps": self.epoch, "seconds": 1.0}

    def go_on(self) -> None:
        self.epoch += 1
        values = {"eval/rating": 100.0 * self.epoch, "losses/ppo/policy": 1.0 / self.epoch, HOSTILE: 1.0}
        self.store.log_metrics([{"hook": "", "event": "epoch_end", "clocks": self.clocks, "values": values}])
        self.store.log_epoch(self.clocks)
        self.store.flush()
        self.heart.beat()

    def show(self, view: GameView, *, age_seconds: float = 0.0) -> None:
        snapshot = GameSnapshot(view=view, wall_time=time.time() - age_seconds)
        self.folder.game_file.write_bytes(snapshot_bytes(snapshot))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def runs_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def server(runs_dir: Path) -> Iterator[DashboardServer]:
    made = DashboardServer(runs_dir)
    thread = threading.Thread(target=made.run)
    thread.start()
    yield made
    made.stop()
    thread.join(60)
    assert not thread.is_alive()


@pytest.fixture
def playing(runs_dir: Path, request: pytest.FixtureRequest) -> Iterator[Playing]:
    made = Playing(runs_dir / f"run-{abs(hash(request.node.name))}")
    yield made
    made.store.close()


def address(server: DashboardServer, path: str) -> str:
    place, _, token = server.url.partition("/?token=")
    return f"{place}{path}?token={token}"


def ask(server: DashboardServer, path: str, **headers: str) -> tuple[int, str]:
    place = urlsplit(server.url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port or 0, timeout=60)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


@contextmanager
def looking_at(browser: Browser, server: DashboardServer, playing: Playing | None = None) -> Iterator[Visit]:
    """Open the page of a run, or the list of all."""
    path = "/" if playing is None else f"/runs/{playing.folder.name}"
    with visiting(browser, address(server, path), is_offline=False) as visit:
        visit.page.wait_for_selector("header.bar")  # the first page sets the cookie, and leads on
        yield visit


def says(visit: Visit, place: str, words: str) -> None:
    visit.wait_until(f"(document.querySelector({place!r})?.innerText ?? '').includes({words!r})")


def test_a_game_is_seen_as_it_is_played(server: DashboardServer, browser: Browser, playing: Playing) -> None:
    with looking_at(browser, server, playing) as visit:
        says(visit, "#game-title", "tiny_shogi")
        page = visit.page
        assert page.url.endswith(f"/runs/{playing.folder.name}")  # the token has left the address
        assert page.locator("#board td").all_inner_texts() == ["·", "Q", "P", "·"]
        assert page.locator("#board td.last").inner_text() == "P"
        assert page.locator("#board .hand.seat0").inner_text() == "Sente holds P2"
        assert page.locator("#board .hand.seat1").inner_text() == "Gote holds nothing"
        assert page.locator("#moves li").all_inner_texts() == ["1P2b", f"2{HOSTILE}"]
        assert "material 4 : 3" in page.locator("#position").inner_text()
        assert page.locator("#results tr").nth(1).inner_text().split() == [
            "Sente",
            "wins",
            "3",
            "75.0",
            "%",
            "50.0",
            "%",
        ]
        assert "2.0 : 1.0" in page.locator("#figures").inner_text()

        page.check("#letters")
        assert page.locator("#board td").all_inner_texts() == [".", "p", "P", "."]
        playing.show(replace(VIEW, moves=(*VIEW.moves, Move(3, 0, "P2a")), tally={"first_wins": 4, "second_wins": 1}))
        says(visit, "#moves", "P2a")
        assert page.locator("#board td").all_inner_texts() == [".", "p", "P", "."]  # as it was asked for
        playing.go_on()
        says(visit, "#facts", "300 of 1,000")
        assert page.evaluate("window.isHarmed") is None
        assert visit.complaints == []
        assert all(url.startswith((f"http://127.0.0.1:{server.port}/", "data:", "blob:")) for url in visit.requests)


def test_an_old_board_is_told_from_a_new_one_and_a_damaged_one_is_no_end(
    server: DashboardServer, browser: Browser, playing: Playing
) -> None:
    playing.show(VIEW, age_seconds=4000.0)
    with looking_at(browser, server, playing) as visit:
        says(visit, "#game-note", "The board is of 40")  # 4,000 seconds, and some more until it is seen
        assert visit.page.locator("#play.old").count() == 1

        playing.folder.game_file.write_text('{"version": 2}')
        says(visit, "#game-note", "it is from a newer hookloop")
        playing.folder.game_file.write_text("{")
        says(visit, "#game-note", "it is no JSON")
        assert not visit.page.locator("#play").is_visible()
        playing.show(VIEW)
        visit.wait_until("!document.querySelector('#play').hidden")


def test_curves_are_drawn_grow_and_stay_zoomed(server: DashboardServer, browser: Browser, playing: Playing) -> None:
    with looking_at(browser, server, playing) as visit:
        visit.wait_until("document.documentElement.dataset.isDrawn === 'true'")
        titles = visit.page.locator("#panels figcaption").all_inner_texts()
        assert titles[:2] == ["rating", "policy loss"]
        rating = "document.querySelector('[data-title=rating] .chart')"
        assert visit.page.evaluate(f"{rating}.data[0].x") == [100, 200]
        visit.page.evaluate(f"Plotly.relayout({rating}, {{'xaxis.range[0]': 150, 'xaxis.range[1]': 250}})")

        playing.go_on()
        visit.wait_until(f"{rating}.data[0].x.length === 3")
        assert visit.page.evaluate(f"{rating}.layout.xaxis.range") == [150, 250]

        visit.page.select_option("#clock", "epoch")
        visit.wait_until(f"{rating}.data[0].x[2] === 3")
        low, high = visit.page.evaluate(f"{rating}.layout.xaxis.range")
        assert low <= 1  # of another clock, what was zoomed is another place
        assert high >= 3
        visit.page.click("summary:text('other')")
        says(visit, "#groups", HOSTILE)
        assert visit.page.locator("#groups img, #panels img").count() == 0
        visit.page.click("summary:text('losses')")
        visit.wait_until("document.querySelector('[data-title=\"losses/ppo/policy\"] .chart')?.data !== undefined")
        assert visit.page.evaluate("window.isHarmed") is None
        assert visit.complaints == []


def test_all_runs_are_listed_searched_and_lead_to_their_pages(
    server: DashboardServer, browser: Browser, playing: Playing
) -> None:
    name = playing.folder.name
    with looking_at(browser, server) as visit:
        says(visit, "#runs", name)
        visit.page.fill("#search", "no such run")
        says(visit, "#none", "is like that")
        visit.page.fill("#search", f"shogi {name}")
        assert visit.page.locator("#runs tr:visible").count() == 1
        visit.page.click(f"a:text('{name}')")
        says(visit, "#name", name)
        assert visit.complaints == []


def test_a_run_that_is_removed_meanwhile_is_told_and_the_list_goes_on(
    server: DashboardServer, browser: Browser, playing: Playing
) -> None:
    name = playing.folder.name
    with looking_at(browser, server, playing) as visit:
        says(visit, "#game-title", "tiny_shogi")
        playing.store.close()
        assert run(["runs", "rm", name, "--yes", "--runs-dir", str(playing.folder.path.parent)]) == 0
        says(visit, "#connection", f"There is no run '{name}'")
    assert ask(server, "/api/runs", authorization=f"Bearer {server.url.partition('=')[2]}")[0] == 200


def test_the_last_epoch_is_drawn_although_the_heart_is_ahead_of_the_statistics(
    server: DashboardServer, browser: Browser, playing: Playing
) -> None:
    with looking_at(browser, server, playing) as visit:
        visit.wait_until("document.documentElement.dataset.isDrawn === 'true'")
        playing.epoch += 1
        playing.heart.beat()
        says(visit, "#facts", "300 of 1,000")
        playing.epoch -= 1
        playing.go_on()

        visit.wait_until("document.querySelector('[data-title=rating] .chart').data[0].x.length === 3")


def test_the_token_leaves_the_address_however_often_and_from_wherever_it_is_opened(
    server: DashboardServer, browser: Browser, playing: Playing, tmp_path: Path
) -> None:
    (tmp_path / "mail.html").write_text(f'<a href="{server.url}">the dashboard</a>')
    with visiting(browser, tmp_path / "mail.html", is_offline=False) as visit:
        visit.page.click("a")
        visit.page.wait_for_selector("#search")
        says(visit, "#runs", playing.folder.name)
        visit.page.goto(address(server, f"/runs/{playing.folder.name}"))
        visit.page.wait_for_selector("#board")
        says(visit, "#game-title", "tiny_shogi")
        assert "token" not in visit.page.url


def test_a_page_that_nobody_looks_at_lets_go_and_catches_up(
    server: DashboardServer, browser: Browser, playing: Playing
) -> None:
    def become(hidden: str) -> None:
        visit.page.evaluate(
            f"Object.defineProperty(document, 'hidden', {{value: {hidden}, configurable: true}});"
            "document.dispatchEvent(new Event('visibilitychange'))"
        )

    with looking_at(browser, server, playing) as visit:
        says(visit, "#game-title", "tiny_shogi")
        become("true")
        asked = len(visit.requests)
        playing.show(replace(VIEW, game="another"))
        visit.page.wait_for_timeout(2500)
        assert "tiny_shogi" in visit.page.locator("#game-title").inner_text()
        assert len(visit.requests) == asked
        become("false")
        says(visit, "#game-title", "another")
        assert visit.page.locator("#connection").inner_text() == ""


def test_a_run_whose_statistics_cannot_be_read_says_so(
    server: DashboardServer, browser: Browser, playing: Playing
) -> None:
    playing.store.close()
    playing.folder.stats_file.write_bytes(b"something else" * 1000)
    long_ago = time.time() - 100
    os.utime(playing.folder.path / "config.json", (long_ago, long_ago))

    with looking_at(browser, server, playing) as visit:
        says(visit, "#reason", "cannot be read")
        says(visit, "#curves-fault", "cannot be read")
        assert visit.page.locator("#connection").inner_text() == ""


def test_nothing_is_answered_without_the_token(server: DashboardServer, playing: Playing) -> None:
    token = server.url.partition("=")[2]
    for path in (
        "/",
        "/api/runs",
        f"/runs/{playing.folder.name}",
        "/assets/dash.js",
        f"/api/runs/{playing.folder.name}",
    ):
        assert ask(server, path)[0] == 401
        assert ask(server, path, authorization=f"Bearer {token}")[0] == 200
    for path in ("/api/runs/nobody", "/api/runs/..%2f..", "/assets/..%2fapp.py", "/assets/app.py", "/nothing"):
        assert ask(server, path, authorization=f"Bearer {token}")[0] == 404
    words = ask(server, "/api/runs/nobody", authorization=f"Bearer {token}")[1]
    assert "There is no run 'nobody'" in words


def test_a_page_says_when_the_dashboard_is_gone(browser: Browser, tmp_path: Path) -> None:
    playing = Playing(tmp_path / "runs" / "mine")
    command = [sys.executable, "-m", "hookloop", "dash", "--port", "0", "--runs-dir", str(tmp_path / "runs")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        with visiting(browser, url.replace("/?", "/runs/mine?"), is_offline=False) as visit:
            visit.page.wait_for_selector("header.bar")
            says(visit, "#game-title", "tiny_shogi")
            process.send_signal(signal.SIGINT)  # with a stream open, too, it ends by itself
            _, complaints = process.communicate(timeout=60)
            assert (process.returncode, complaints) == (0, "")
            says(visit, "#connection", "The dashboard does not answer; what is shown is of")
    finally:
        process.kill()
        process.communicate()
        playing.store.close()


def test_what_cannot_be_served_is_refused_in_words(
    server: DashboardServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def complaint(*words: str) -> str:
        assert run(["dash", *words]) == 2
        return " ".join(capsys.readouterr().err.split())

    assert "There is no folder" in complaint("--runs-dir", str(tmp_path / "none"))
    runs = ("--runs-dir", str(tmp_path))
    for everywhere in ("0.0.0.0", "0", "0x0", "::"):
        assert "every address of this machine" in complaint(*runs, "--host", everywhere)
    assert "--port 0 takes a port that is free" in complaint(*runs, "--port", str(server.port))
    assert "--port must be from 0 to 65535, got 70000" in complaint(*runs, "--port", "70000")
    assert "Cannot listen at 203.0.113.7" in complaint(*runs, "--host", "203.0.113.7")
