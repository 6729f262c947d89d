"""A run as another process sees it: from its statistics, its heartbeat and its files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hookloop.cli.main import run
from hookloop.core.costs import HookCost
from hookloop.display import RunView
from hookloop.monitoring import Heartbeat, PhaseTrace
from hookloop.runs.folder import RunConfig, RunFolder
from hookloop.runs.watched_run import GONE, STARTING, WatchedRun
from hookloop.stats import StatsStore


class Trained:
    """A run's folder, and the process that writes to it."""

    def __init__(self, path: Path, run_id: str = "abc") -> None:
        self.folder = RunFolder(path / "mine")
        settings = {"total_env_steps": 10_000, "env": {"id": "CartPole-v1", "num_envs": 8}}
        self.folder.path.mkdir(parents=True)
        self.folder.write_config(RunConfig("cartpole", 0, 1, settings, run_id=run_id))
        self.clocks = {"epochs": 0, "env_steps": 0, "optimizer_steps": 0, "seconds": 0.0}
        self.heart = Heartbeat(
            self.folder.heartbeat_file, 5.0, trace=PhaseTrace(), look=lambda: {"clocks": dict(self.clocks)}
        )
        self.store = StatsStore(self.folder.stats_file, run_id=run_id)

    def begin(self, attempt: int = 1) -> None:
        self.store.begin_attempt(attempt, self.clocks, name="mine")

    def epoch(self, **values: float) -> None:
        self.clocks["epochs"] += 1
        self.clocks["env_steps"] += 1000
        self.clocks["seconds"] += 2.0
        row = {"hook": "", "event": "epoch_end", "clocks": dict(self.clocks), "values": values}
        self.store.log_metrics([row])
        self.store.log_epoch(dict(self.clocks))

    def seen(self) -> RunView:
        self.store.flush()
        watched = WatchedRun(self.folder)
        try:
            return watched.view()
        finally:
            watched.close()


@pytest.fixture
def trained(tmp_path: Path):
    made = Trained(tmp_path)
    yield made
    made.store.close()


def test_a_run_that_is_only_just_starting_is_shown_as_such(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "mine")
    folder.path.mkdir()
    folder.write_config(RunConfig("cartpole", 0, 1, {}))

    view = WatchedRun(folder).view()

    assert (view.run, view.recipe, view.status, view.step) == ("mine", "cartpole", STARTING, 0)


def test_a_live_run_shows_where_it_is_how_fast_and_its_curves(trained: Trained) -> None:
    trained.begin()
    for number in range(4):
        trained.epoch(**{"loss/policy": 1.0 / (number + 1), "return/mean": float(number)})
    trained.store.log_metrics([{"hook": "monitor", "event": "epoch_end", "clocks": trained.clocks, "values": {"x": 1}}])
    trained.heart.beat()

    view = trained.seen()

    assert (view.status, view.step, view.epoch, view.total_steps, view.num_envs) == ("running", 4000, 4, 10_000, 8)
    assert view.steps_per_second == pytest.approx(500)
    assert view.eta_seconds == pytest.approx(12)
    assert view.elapsed_seconds >= 8.0
    assert list(view.ordered_curves) == ["return/mean", "loss/policy"]  # those of the workload, as it shows them
    assert view.curves["return/mean"].points == (0.0, 1.0, 2.0, 3.0)


def test_the_heartbeat_is_further_than_the_statistics(trained: Trained) -> None:
    trained.begin()
    trained.epoch(loss=1.0)
    trained.clocks["env_steps"] = 1500
    trained.heart.beat()

    assert trained.seen().step == 1500


def test_a_second_look_takes_in_what_is_new_and_a_resume_begins_anew(trained: Trained) -> None:
    trained.begin()
    trained.epoch(loss=3.0)
    trained.store.flush()
    watched = WatchedRun(trained.folder)
    assert watched.view().curves["loss"].points == (3.0,)

    trained.epoch(loss=2.0)
    trained.epoch(loss=1.0)
    trained.store.flush()
    assert watched.view().curves["loss"].points == (3.0, 2.0, 1.0)

    trained.clocks.update(epochs=1, env_steps=1000, seconds=2.0)
    trained.begin(attempt=2)
    trained.epoch(loss=2.5)
    trained.store.flush()
    view = watched.view()
    watched.close()
    assert view.curves["loss"].points == (3.0, 2.5)
    assert (view.attempt, view.step) == (2, 2000)


def test_costs_phases_scores_checkpoints_and_failures_are_read(trained: Trained) -> None:
    trained.begin()
    trained.epoch(**{"timing_cumulative/sec/total": 10.0, "timing_cumulative/sec/rollout": 6.0})
    trained.store.log_hook_costs([HookCost("stats", "epoch_end", 10, 10**15, 10, 10)])
    trained.store.log_checkpoint("step-1000", trained.clocks, checkpoint_id="x", uri="file:///x", kind="periodic")
    trained.store.log_evaluation("greedy", {"return": 9.0}, trained.clocks, episodes=3)
    trained.store.log_event("upload", "hook_error", "OSError('no route')", trained.clocks)
    trained.heart.beat()

    view = trained.seen()

    assert view.phases == {"collect": pytest.approx(0.6)}
    assert view.hooks["stats"] > 0
    assert view.checkpoint is not None
    assert view.checkpoint.name == "step-1000"
    assert (view.evaluations[0].name, view.evaluations[0].score, view.evaluations[0].step) == ("greedy", 9.0, 1000)
    assert (view.failures[0].hook, view.failures[0].count) == ("upload", 1)


def test_a_run_that_has_ended_says_how(trained: Trained) -> None:
    trained.begin()
    trained.epoch(loss=1.0)
    trained.store.log_event("goal", "stop", "return reached", trained.clocks)
    trained.heart.beat("stopped")

    view = trained.seen()

    assert (view.status, view.reason, view.is_ticking) == ("stopped", "return reached", False)


def test_a_run_whose_process_is_gone_is_not_waited_for(trained: Trained, capsys: pytest.CaptureFixture[str]) -> None:
    trained.begin()
    trained.epoch(loss=1.0)
    trained.heart.beat()
    beat = json.loads(trained.folder.heartbeat_file.read_text())
    trained.folder.heartbeat_file.write_text(json.dumps({**beat, "pid": 2**22 - 1}))

    assert trained.seen().status == GONE
    assert run(["watch", "mine", "--runs-dir", str(trained.folder.path.parent)]) == 0
    assert "status=gone" in capsys.readouterr().out


def test_a_run_id_from_a_file_is_a_value_and_no_command(tmp_path: Path) -> None:
    trained = Trained(tmp_path, run_id="x' OR '1'='1")
    trained.begin()
    trained.epoch(loss=1.0)

    assert list(trained.seen().curves) == ["loss"]
    trained.store.close()


def test_json_is_one_object_per_look(trained: Trained, capsys: pytest.CaptureFixture[str]) -> None:
    trained.begin()
    trained.epoch(**{"return/mean": 5.0})
    trained.store.flush()
    trained.heart.beat("completed")

    assert run(["watch", "mine", "--json", "--runs-dir", str(trained.folder.path.parent)]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    found = json.loads(line)
    assert (found["step"], found["return/mean"], found["status"]) == (1000, 5.0, "completed")


def test_too_short_an_interval_is_refused(trained: Trained, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["watch", "mine", "--interval-seconds", "0", "--runs-dir", str(trained.folder.path.parent)]

    assert run(words) == 2
    assert "--interval-seconds must be at least 0.1, got 0" in capsys.readouterr().err
