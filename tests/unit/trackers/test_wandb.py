from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hookloop.trackers import EpochRows, TrackedRun, WandbTracker
from hookloop.trackers.wandb_files import offline_rows
from tests.unit.trackers.parts import RUN, epochs, point


class FakeRun:
    """A run on a server that keeps what it is told, and whose connection may break."""

    def __init__(self, server: dict[str, Any]) -> None:
        self.server = server
        self.summary = dict(server["summary"])
        self.offline = False
        self.path = "me/p/run-1"
        self.breaks_after: int | None = None

    def define_metric(self, name: str, **options: Any) -> None:
        self.server["axes"].append((name, options))

    def log(self, row: dict[str, float]) -> None:
        if self.breaks_after == 0:
            raise ConnectionError("broken")
        if self.breaks_after is not None:
            self.breaks_after -= 1
        self.server["history"].append(row)
        self.server["summary"].update(row)
        self.summary.update(row)

    def finish(self) -> None:
        self.server["summary"].update(self.summary)
        self.server["finished"] += 1


def fake_module(server: dict[str, Any], name: str = "wandb") -> Any:
    module = SimpleNamespace(__name__=name, Settings=lambda **options: options)

    def init(
        project: str, id: str, name: str, resume: str, dir: str, tags: list[str], config: dict[str, Any], settings: Any
    ) -> FakeRun:
        server["init"] = {"project": project, "id": id, "resume": resume, "tags": tags, "config": config}
        server["run"] = FakeRun(server)
        return server["run"]

    module.init = init
    module.Api = lambda: SimpleNamespace(run=lambda path: SimpleNamespace(tags=server["tags"]))
    return module


@pytest.fixture
def server() -> dict[str, Any]:
    return {"history": [], "summary": {}, "axes": [], "tags": [], "finished": 0}


def test_axes_are_defined_once_and_the_default_is_the_agents_steps(server: dict[str, Any], tmp_path: Path) -> None:
    tracker = WandbTracker(tmp_path, module=fake_module(server))
    tracker.open(TrackedRun("run-1", "first", model_parameters=1234))
    tracker.log(epochs(1))
    tracker.log(epochs(2))
    tracker.finish("completed")

    assert server["axes"] == [
        ("metric/agent_step", {}),
        ("metric/epoch", {}),
        ("metric/optimizer_step", {}),
        ("metric/seconds", {}),
        ("hookloop/*", {"hidden": True}),
        ("*", {"step_metric": "metric/agent_step"}),
    ]
    assert server["history"][1]["loss"] == 1.0
    assert [row["metric/agent_step"] for row in server["history"]] == [10, 10, 10, 20, 20, 20]
    assert server["run"].summary["status"] == "completed"
    assert server["run"].summary["model/parameters"] == 1234
    assert (server["init"]["id"], server["init"]["resume"]) == ("run-1", "allow")


@pytest.mark.parametrize("broken_after", range(7))
def test_a_connection_that_breaks_within_an_epoch_neither_loses_nor_repeats_a_row(
    broken_after: int, server: dict[str, Any], tmp_path: Path
) -> None:
    tracker = WandbTracker(tmp_path, module=fake_module(server))
    assert tracker.open(RUN) == 0
    server["run"].breaks_after = broken_after
    if broken_after < 6:
        with pytest.raises(ConnectionError):
            tracker.log(epochs(1, 2))
    else:
        tracker.log(epochs(1, 2))
    tracker.close()

    cursor = tracker.open(RUN)
    assert cursor == broken_after // 3
    tracker.log(epochs(*range(cursor + 1, 4)))

    found = [(row["metric/agent_step"], row.get("lr"), row.get("loss")) for row in server["history"]]
    assert found == [
        (step, *values) for k, step in ((1, 10), (2, 20), (3, 30)) for values in ((k, None), (None, k), (None, k + 0.5))
    ]


def test_the_abort_tag_is_looked_for_only_when_asked_to_and_online(server: dict[str, Any], tmp_path: Path) -> None:
    server["tags"] = ["abort"]
    silent = WandbTracker(tmp_path, module=fake_module(server))
    asked = WandbTracker(tmp_path, module=fake_module(server), abort_tag="abort")

    assert asked.stop_reason() is None  # not open
    silent.open(RUN)
    asked.open(RUN)
    assert silent.stop_reason() is None
    assert asked.stop_reason() == "the run has the tag 'abort' on wandb"
    server["run"].offline = True
    assert asked.stop_reason() is None


def test_a_module_with_fewer_calls_will_do(tmp_path: Path) -> None:
    rows: list[dict[str, float]] = []

    def init(project: str, name: str, config: dict[str, Any], resume: str) -> Any:
        return SimpleNamespace(log=rows.append, finish=lambda: None)

    tracker = WandbTracker(tmp_path, module=SimpleNamespace(__name__="trackio", init=init))

    assert tracker.open(RUN) is None
    tracker.log(epochs(1))
    tracker.finish("completed")
    tracker.close()

    assert [row["metric/agent_step"] for row in rows] == [10, 10, 10]


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [{key: json.loads(text) for key, text in row.items()} for row in offline_rows(folder, RUN.run_id)]


def log_offline_and_die(folder: Path, numbers: range) -> None:
    """Log in a process of its own, with the real wandb, and kill it when all is logged."""
    program = f"""
import os
from pathlib import Path
from hookloop.trackers import WandbTracker
from tests.unit.trackers.parts import RUN, epochs
tracker = WandbTracker(Path({str(folder)!r}), mode="offline")
assert tracker.open(RUN) == {numbers[0] - 1}
tracker.log(epochs(*{numbers!r}))
os.kill(os.getpid(), 9)
"""
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])}
    environment.pop("WANDB_SERVICE", None)  # it would share the process that writes for this one
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, cwd=root)
    assert done.returncode == -9, done.stderr


def test_offline_files_hold_every_row_once_whatever_a_kill_took_that_wandb_had_in_memory(tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    tracker = WandbTracker(tmp_path, mode="offline")
    tracker.open(RUN)
    tracker.log(epochs(1, 2, 3))
    tracker.close()
    log_offline_and_die(tmp_path, range(4, 301))
    held = tracker.open(RUN)
    assert held is not None
    assert 3 <= held <= 300  # it had taken 300; how many are on the disk is chance
    tracker.log(epochs(*range(held + 1, 302)))
    tracker.close()
    assert tracker.open(RUN) == 301

    found = rows_of(tmp_path)
    assert [(row["metric/agent_step"], row.get("lr"), row.get("loss")) for row in found] == [
        (10 * k, *values) for k in range(1, 302) for values in ((k, None), (None, k), (None, k + 0.5))
    ]
    assert [row["_step"] for row in found] == list(range(903))  # what the server takes for different rows


def test_wandb_leaves_the_random_streams_alone(tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    before = random.getstate()
    tracker = WandbTracker(tmp_path, mode="offline")
    tracker.open(RUN)
    tracker.log([EpochRows([point(1)], 1)])
    tracker.finish("completed")
    tracker.close()

    assert random.getstate() == before
    (row,) = rows_of(tmp_path)
    assert (row["loss"], row["hookloop/cursor"], row["hookloop/part"]) == (1.0, 1, 0)
