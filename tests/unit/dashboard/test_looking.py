"""What the dashboard knows of runs: one look for all who ask, and nothing that is not one of the runs."""

from __future__ import annotations

import json
import math
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hookloop.dashboard.looking import CURVES_SECONDS, IDLE_SECONDS, LIST_SECONDS, VIEW_SECONDS, Looks
from hookloop.dashboard.server import hosts_of
from hookloop.errors import ConfigError, UnknownNameError
from hookloop.runs import watched_run
from hookloop.runs.folder import RunConfig, RunFolder
from hookloop.runs.tags import add_tags
from hookloop.stats import StatsStore
from hookloop.storage.lock import RunLock
from hookloop.testing import ManualClock


class Served:
    """A folder of runs, and what the dashboard says of them, by a clock that is set by hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = ManualClock()
        self.looks = Looks(folder, clock=lambda: self.clock() / 1e9)

    def make(self, name: str, *, outcome: str | None = "completed", run_id: str = "abc", seed: int = 0) -> StatsStore:
        folder = RunFolder(self.folder / name)
        folder.write_config(RunConfig("cartpole", seed, 1, {"total_env_steps": 1000}, run_id=run_id))
        store = StatsStore(folder.stats_file, run_id=run_id)
        store.begin_attempt(1, {"epochs": 0}, name=name, recipe="cartpole", seed=seed)
        self.measure(store, 1, 1.0)
        self.measure(store, 2, math.nan)
        if outcome:
            store.end_attempt(outcome)
            store.close()
        return store

    def measure(self, store: StatsStore, epoch: int, value: float) -> None:
        clocks = {"epochs": epoch, "env_steps": 100 * epoch, "optimizer_steps": epoch, "seconds": float(epoch)}
        values = {"return/mean": value, "losses/ppo/policy": 0.5, "lonely": 1.0}
        store.log_metrics([{"hook": "", "event": "epoch_end", "clocks": clocks, "values": values}])
        store.log_epoch(clocks)
        store.flush()

    def runs(self) -> list[dict[str, Any]]:
        return json.loads(self.looks.runs())["runs"]

    def view(self, name: str) -> dict[str, Any]:
        return json.loads(self.looks.view(name))

    def curves(self, name: str, **asked: str) -> dict[str, Any]:
        return json.loads(self.looks.curves(name, **asked))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    made = Served(tmp_path)
    yield made
    made.looks.close()


def test_a_run_is_plain_data_with_a_version_and_what_is_not_finite_is_null(served: Served) -> None:
    served.make("mine")

    view = served.view("mine")

    assert (view["version"], view["run"], view["recipe"], view["epoch"]) == (1, "mine", "cartpole", 2)
    assert (view["step"], view["total_steps"], view["progress"]) == (200, 1000, 0.2)
    assert view["latest"] == {"return/mean": None, "lonely": 1.0, "losses/ppo/policy": 0.5}
    assert (view["game"], view["game_fault"], view["is_game_old"]) == (None, "", False)


def test_a_run_is_looked_at_once_however_many_ask(served: Served) -> None:
    store = served.make("mine", outcome=None)
    assert served.view("mine")["epoch"] == 2

    served.measure(store, 3, 3.0)
    assert served.view("mine")["epoch"] == 2
    served.clock.advance(VIEW_SECONDS)
    assert served.view("mine")["epoch"] == 3
    store.close()


def test_curves_are_figures_that_say_the_most_and_groups_of_the_rest(served: Served) -> None:
    store = served.make("mine", outcome=None)

    found = served.curves("mine")
    assert (found["version"], found["clock"]) == (1, "env_steps")
    assert [panel["title"] for panel in found["panels"]][:2] == ["policy loss", "return"]
    (trace, *_) = found["panels"][1]["figure"]["data"]
    assert (trace["x"], trace["y"]) == ([100.0, 200.0], [1.0, None])
    assert found["groups"] == ["losses", "other", "return"]

    by_time = served.curves("mine", clock="seconds", group="losses")
    assert [panel["title"] for panel in by_time["panels"]] == ["losses/ppo/policy"]
    assert by_time["panels"][0]["figure"]["data"][0]["x"] == [1.0, 2.0]

    served.measure(store, 3, 3.0)
    assert served.curves("mine") == found
    served.clock.advance(CURVES_SECONDS)
    assert served.curves("mine")["panels"][1]["figure"]["data"][0]["x"] == [100.0, 200.0, 300.0]
    store.close()


def test_only_the_clocks_that_there_are_can_be_asked_for(served: Served) -> None:
    served.make("mine")

    with pytest.raises(UnknownNameError, match=r"There is no clock 'second'\. Did you mean 'seconds'"):
        served.looks.curves("mine", "second")


@pytest.mark.parametrize("name", ["..", ".", "", "../mine", "mine/", "mine/../mine", "/etc", "mine\0", "%2e%2e", "min"])
def test_what_is_no_run_of_this_folder_is_not_found(served: Served, name: str) -> None:
    served.make("mine")

    with pytest.raises(UnknownNameError, match="There is no run"):
        served.looks.view(name)


def test_the_newest_run_comes_first_and_a_damaged_one_is_told_apart(served: Served) -> None:
    served.make("older", run_id="1")
    served.make("newer", run_id="2")
    (served.folder / "broken").mkdir()
    (served.folder / "broken" / "config.json").write_text("{")

    assert [(run["run"], run["status"]) for run in served.runs()] == [
        ("newer", "completed"),
        ("older", "completed"),
        ("broken", "damaged"),
    ]
    with pytest.raises(ConfigError, match="is no JSON"):
        served.looks.view("broken")


def test_a_run_that_cannot_be_listed_takes_none_of_the_others_along(served: Served) -> None:
    served.make("good", run_id="1", seed=2**60 + 1)
    (served.folder / "deep" / "config.json").mkdir(parents=True)
    (served.folder / os.fsdecode(b"bad\xff")).mkdir()
    (served.folder / os.fsdecode(b"bad\xff") / "config.json").write_text("{}")
    huge = RunFolder(served.folder / "huge")
    huge.write_config(RunConfig("cartpole", 2**70, 1, {}))
    torn = RunFolder(served.folder / "torn")
    torn.write_config(RunConfig("\ud800", 0, 1, {}))

    found = {run["run"]: (run["status"], run["seed"]) for run in served.runs()}

    assert found == {
        "good": ("completed", str(2**60 + 1)),
        "deep": ("damaged", None),
        "huge": ("no statistics", str(2**70)),
        "torn": ("damaged", None),
    }


def test_who_asks_while_another_reads_gets_what_was_before_and_nobody_else_waits(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.make("slow", run_id="1")
    served.make("other", run_id="2")
    before = served.view("slow")
    served.clock.advance(1)
    is_reading, may_go_on = threading.Event(), threading.Event()
    original = watched_run.WatchedRun.view

    def slowly(watched: Any) -> Any:
        if watched._folder.name == "slow":
            is_reading.set()
            assert may_go_on.wait(60)
        return original(watched)

    monkeypatch.setattr(watched_run.WatchedRun, "view", slowly)
    reader = threading.Thread(target=served.looks.view, args=("slow",))
    reader.start()
    try:
        assert is_reading.wait(60)
        assert served.view("slow") == before
        assert served.view("other")["run"] == "other"
        assert served.curves("slow")["panels"]
    finally:
        may_go_on.set()
        reader.join(60)
    assert not reader.is_alive()


def test_a_run_that_has_ended_without_a_heartbeat_has_ended(served: Served) -> None:
    served.make("mine", outcome="stopped")

    assert served.view("mine")["status"] == "stopped"


def test_who_still_holds_a_run_that_is_closed_is_answered(served: Served) -> None:
    served.make("mine")
    look = served.looks._look("mine")

    look.close()

    assert json.loads(look.view.give(lambda: b"1", seconds=0.0, now=lambda: 0.0)) == 1
    assert look.watched.view().run == "mine"
    look.close()


def test_the_usual_port_is_left_out_by_browsers() -> None:
    assert hosts_of(["localhost"], 8420) == ["localhost:8420"]
    assert hosts_of(["localhost"], 80) == ["localhost:80", "localhost"]


def test_curves_say_up_to_which_epoch_they_are_and_old_ones_are_forgotten(served: Served) -> None:
    served.make("mine")
    assert served.curves("mine")["epoch"] == 2
    for number in range(5):
        served.curves("mine", group=f"nothing-{number}")
    (look,) = served.looks._looks.values()
    assert len(look.curves) == 6

    served.clock.advance(IDLE_SECONDS / 2)
    served.view("mine")
    served.clock.advance(IDLE_SECONDS / 2 + 1)
    served.curves("mine")
    assert len(look.curves) == 1


def test_a_run_that_has_ended_is_read_again_only_when_it_has_changed(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.make("mine", run_id="1")
    going = served.make("going", outcome=None, run_id="2")
    read: list[str] = []
    original = RunFolder.read_retention

    def counted(folder: RunFolder) -> Any:
        read.append(folder.name)
        return original(folder)

    monkeypatch.setattr(RunFolder, "read_retention", counted)
    with RunLock(served.folder / "going"):
        for _ in range(3):
            served.runs()
            served.runs()  # one look for all who ask
            served.clock.advance(LIST_SECONDS)
    assert (read.count("mine"), read.count("going")) == (1, 3)

    add_tags(served.folder / "mine", ("good",))
    assert [run["tags"] for run in served.runs() if run["run"] == "mine"] == [["good"]]
    assert read.count("mine") == 2
    going.close()


def test_a_new_run_of_the_same_name_is_another_run(served: Served) -> None:
    served.make("mine", run_id="1", seed=1)
    assert served.view("mine")["epoch"] == 2

    shutil.rmtree(served.folder / "mine")
    with pytest.raises(UnknownNameError):
        served.view("mine")
    store = served.make("mine", outcome=None, run_id="2", seed=2)
    served.measure(store, 3, 3.0)

    assert served.view("mine")["epoch"] == 3
    store.close()


def test_the_statistics_of_a_run_that_nobody_asks_for_are_closed(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []
    monkeypatch.setattr(watched_run.WatchedRun, "close", lambda watched: closed.append(watched._folder.name))
    served.make("mine", run_id="1")
    served.make("other", run_id="2")
    served.view("mine")

    served.clock.advance(IDLE_SECONDS - 1)
    served.view("other")
    assert closed == []
    served.clock.advance(2)
    served.view("other")
    assert closed == ["mine"]
