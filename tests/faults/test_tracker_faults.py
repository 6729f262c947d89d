"""Whatever happens to a tracker or to the run: every point arrives once, in order, and training has the same bits."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from hookloop.checkpoints import CheckpointManager
from hookloop.cli.main import run
from hookloop.core import HookContext, TrainerState, TrainingLoop
from hookloop.hooks import CheckpointHook, StatsHook, TrackerHook
from hookloop.runs.folder import RunConfig, RunFolder
from hookloop.stats import StatsClient, StatsReader
from hookloop.testing import ToyWorkload
from hookloop.trackers import JsonlTracker, Tracker, registry
from hookloop.trackers.jsonl import FILE_NAME
from tests.faults.http_tracker import HttpTracker, Server
from tests.faults.processes import Child, fork, warm_up
from tests.unit.trackers.parts import ListTracker
from tests.waiting import PATIENCE_SECONDS, wait_until

RUN = "run-1"


class Pace:
    """Takes a moment for each epoch, and calls somebody at some of them."""

    name = "pace"

    def __init__(self, calls: Mapping[int, Callable[[], object]] | None = None, seconds: float = 0.02) -> None:
        self._calls, self._seconds = dict(calls or {}), seconds

    def on_epoch_end(self, ctx: HookContext) -> dict[str, float]:
        self._calls.get(ctx.state.epoch, lambda: None)()
        time.sleep(self._seconds)
        return {"epoch_squared": float(ctx.state.epoch**2)}


class InStep:
    """Lets training be a few epochs ahead of what has arrived, so that it arrives in many pieces."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def on_epoch_end(self, ctx: HookContext) -> None:
        wait_until(lambda: max((row["epoch"] for row in self._server.received()), default=0) > ctx.state.epoch - 5)


def train(
    folder: Path,
    trackers: Mapping[str, Tracker],
    *hooks: object,
    epochs: int = 40,
    resume: bool = False,
    finish_seconds: float = PATIENCE_SECONDS,
) -> TrainingLoop:
    stats = folder / "stats.sqlite"
    client = StatsClient(stats, run_id=RUN, flush_seconds=0.02)
    loop = TrainingLoop(
        ToyWorkload(epochs, seed=1),
        [
            StatsHook(client, name="small"),
            CheckpointHook(CheckpointManager(folder / "checkpoints"), checkpoint_interval=3, resume=resume),
            TrackerHook(
                trackers,
                stats_url=stats,
                run_id=RUN,
                folder=folder,
                finish_seconds=finish_seconds,
                interval_seconds=0.03,
            ),
            *hooks,
        ],
        state=TrainerState(seed=1),
    )
    loop.run()
    return loop


def points(folder: Path) -> list[tuple[Any, ...]]:
    """Return every point of the statistics, in the order in which trackers are told."""
    with StatsReader(folder / "stats.sqlite") as reader:
        return keyed(reader.rows_after(RUN, None, 1_000_000)[0])


def keyed(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(row["epoch"], row["env_steps"], row["hook"], row["key"], row["value"]) for row in rows]


def make_run(folder: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the folder of a run whose tracker ``hookloop sync`` can find."""
    point = EntryPoint("http", "tests.faults.http_tracker:HttpTracker", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point])
    folder.mkdir()
    RunFolder(folder).write_config(RunConfig("toy", 1, 1, {"trackers": {"http": {"url": server.url}}}, run_id=RUN))
    return folder


@pytest.fixture(scope="module", autouse=True)
def everything_is_imported(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("warm")
    warm_up(lambda: train(folder, {"jsonl": JsonlTracker(folder)}, epochs=3))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "server")
    yield server
    server.kill()


def well(server: Server) -> None:
    server.misbehave("not at all")


TROUBLES: dict[str, Callable[[Server], dict[int, Callable[[], object]]]] = {
    "refuses": lambda server: {1: server.kill, 25: server.start},
    "hangs": lambda server: {5: lambda: server.misbehave("hangs"), 25: lambda: well(server)},
    "errs": lambda server: {5: lambda: server.misbehave("errs"), 25: lambda: well(server)},
    "loses answers": lambda server: {3: lambda: server.misbehave("loses answers"), 25: lambda: well(server)},
    "dies and comes back": lambda server: {8: server.kill, 12: server.start, 20: server.kill, 24: server.start},
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_server_in_trouble_gets_every_point_once_and_in_order(trouble: str, server: Server, tmp_path: Path) -> None:
    server.start()
    tracker = HttpTracker(tmp_path, server.url)

    train(tmp_path / "run", {"http": tracker}, Pace(TROUBLES[trouble](server)))

    assert keyed(server.received()) == points(tmp_path / "run")
    assert len(points(tmp_path / "run")) == 80


def test_sync_sends_what_a_server_that_was_away_to_the_end_has_missed(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_run(tmp_path / "run", server, monkeypatch)
    server.start()
    trackers = {"http": HttpTracker(folder, server.url), "jsonl": JsonlTracker(folder)}

    def die() -> None:
        wait_until(server.received)
        server.kill()

    train(folder, trackers, Pace({10: die}), finish_seconds=0.3)
    arrived = len(server.received())
    assert 0 < arrived < 80

    capsys.readouterr()
    monkeypatch.setattr("hookloop.cli.sync._FIRST_PAUSE_SECONDS", 0.01)
    assert run(["sync", str(folder)]) == 4
    assert "nothing to send; then it failed: URLError" in capsys.readouterr().out
    server.start()
    assert run(["sync", str(folder)]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["jsonl", "http"]
    assert lines[1].removeprefix("http").strip() == f"{80 - arrived} points, epochs {arrived // 2 + 1}-40"
    assert lines[0].endswith("nothing to send")
    assert keyed(server.received()) == points(folder)


def test_sync_beside_a_run_that_trains_is_told_who_sends(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_run(tmp_path / "run", server, monkeypatch)
    server.start()
    codes: list[int] = []

    def sync() -> None:
        wait_until(server.received)
        codes.append(run(["sync", str(folder), "--tracker", "http"]))

    train(folder, {"http": HttpTracker(folder, server.url)}, Pace({30: sync}))

    assert codes == [75]
    assert "is in use by process" in capsys.readouterr().err.replace("\n", " ")
    assert keyed(server.received()) == points(folder)


def resumed_until_done(folder: Path, server: Server, kills: list[Callable[[Child], None] | int]) -> int:
    """Train in processes that are killed one after another, then to the end; return how many were killed."""
    killed = 0
    for number, kill in enumerate([*kills, 0]):
        kills_at = kill if isinstance(kill, int) else 0

        def work(number: int = number, kills_at: int = kills_at) -> None:
            trackers = {"http": HttpTracker(folder, server.url, kills_at), "jsonl": JsonlTracker(folder)}
            train(folder, trackers, Pace(seconds=0.01), InStep(server), epochs=60, resume=number > 0)

        child = fork(work, folder.parent / f"output-{number}")
        if callable(kill):
            kill(child)
        code = child.code()
        assert code in (0, -9), child.output
        killed += code == -9
    return killed


def lines_of(folder: Path) -> list[tuple[int, str, float]]:
    lines = [json.loads(line) for line in (folder / FILE_NAME).read_text().splitlines()]
    return [(line["epoch"], key, value) for line in lines for key, value in line["metrics"].items()]


def test_a_kill_between_sending_and_saving_the_cursor_repeats_nothing(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_run(tmp_path / "run", server, monkeypatch)
    server.start()

    killed = resumed_until_done(folder, server, [1, 3, 2])
    assert run(["sync", str(folder)]) == 0

    assert killed == 3
    assert keyed(server.received()) == points(folder)
    assert lines_of(folder) == [(epoch, key, value) for epoch, _, _, key, value in points(folder)]


@pytest.mark.parametrize("kills", [5, pytest.param(60, marks=pytest.mark.faults)])
@pytest.mark.timeout(600)
def test_kills_at_any_instant_lose_and_repeat_nothing(
    kills: int, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_run(tmp_path / "run", server, monkeypatch)
    server.start()
    numbers = random.Random(7)

    def kill(child: Child) -> None:
        child.ends_within(numbers.uniform(0.05, 0.5))
        child.kill()

    resumed_until_done(folder, server, [kill] * kills)
    assert run(["sync", str(folder)]) == 0

    assert keyed(server.received()) == points(folder)
    assert lines_of(folder) == [(epoch, key, value) for epoch, _, _, key, value in points(folder)]


class Hangs(ListTracker):
    def __init__(self, *, may_go: threading.Event) -> None:
        super().__init__()
        self._may_go = may_go

    def log(self, epochs: object) -> None:
        self._may_go.wait(600)


def release(may_go: threading.Event) -> None:
    """Let hung trackers go, and wait for the end of their threads."""
    may_go.set()
    for thread in threading.enumerate():
        if thread.name.startswith("tracker-"):
            thread.join(PATIENCE_SECONDS)


def test_training_has_the_same_bits_whatever_a_tracker_does(tmp_path: Path) -> None:
    may_go = threading.Event()
    raising = ListTracker()
    raising.before = [RuntimeError("no")] * 100
    trackers: dict[str, dict[str, Tracker]] = {
        "none": {},
        "good": {"jsonl": JsonlTracker(tmp_path / "good")},
        "raising": {"list": raising},
        "hung": {"list": Hangs(may_go=may_go)},
    }

    endings = {
        name: train(tmp_path / name, each, Pace(seconds=0.002), epochs=20, finish_seconds=0.1)
        for name, each in trackers.items()
    }

    release(may_go)
    for name, loop in endings.items():
        assert loop.workload.state_dict() == endings["none"].workload.state_dict(), name
        assert points(tmp_path / name) == points(tmp_path / "none"), name
        counters = {clock: value for clock, value in loop.clocks.reading().items() if clock != "seconds"}
        assert counters["epochs"] == 20
        assert loop.state.failures == {}


def test_a_hung_tracker_holds_up_neither_another_nor_the_end(tmp_path: Path) -> None:
    may_go, held_up = threading.Event(), True
    for finish_seconds in (0.5, 5.0, 50.0):  # on a busy machine, the good one needs more time
        folder = tmp_path / str(finish_seconds)
        trackers = {"hangs": Hangs(may_go=may_go), "jsonl": JsonlTracker(folder)}
        train(folder, trackers, Pace(seconds=0.002), finish_seconds=finish_seconds)  # returns while one still hangs
        held_up = lines_of(folder) != [(epoch, key, value) for epoch, _, _, key, value in points(folder)]
        if not held_up:
            break

    assert not held_up
    release(may_go)
