"""The hook that feeds trackers from the statistics of a run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hookloop.checkpoints import CheckpointManager
from hookloop.core import HookContext, TrainerState, TrainingLoop
from hookloop.errors import ConfigError
from hookloop.hooks import CheckpointHook, StatsHook, TrackerHook
from hookloop.hooks.trackers import tracker_lock
from hookloop.stats import StatsClient, StatsReader
from hookloop.testing import ToyWorkload, assert_pure
from hookloop.trackers import TrackedRun, Tracker
from tests.unit.trackers.parts import ListTracker


def hook_in(folder: Path, trackers: Mapping[str, Tracker] | Callable[[], Mapping[str, Tracker]]) -> TrackerHook:
    return TrackerHook(
        trackers, stats_url=folder / "s.sqlite", run_id="run", folder=folder, interval_seconds=0.02, finish_seconds=60
    )


def train(folder: Path, trackers: Any, *hooks: object, epochs: int = 6, resume: bool | str = False) -> TrainingLoop:
    client = StatsClient(folder / "s.sqlite", run_id="run", flush_seconds=0.02)
    loop = TrainingLoop(
        ToyWorkload(epochs, seed=1),
        [
            hook_in(folder, trackers),
            StatsHook(client, name="mine", seed=1),
            CheckpointHook(CheckpointManager(folder / "c"), checkpoint_interval=2, resume=resume),
            *hooks,
        ],
        state=TrainerState(seed=1),
    )
    loop.run()
    return loop


def curve(folder: Path) -> list[tuple[int, str, float]]:
    with StatsReader(folder / "s.sqlite") as reader:
        rows, _ = reader.rows_after("run", None, 1_000_000)
    return [(row["epoch"], row["key"], row["value"]) for row in rows]


def test_a_tracker_has_everything_when_training_has_ended(tmp_path: Path) -> None:
    tracker = ListTracker()

    loop = train(tmp_path, {"list": tracker})

    assert tracker.held == curve(tmp_path)
    assert len(tracker.held) == 6
    assert tracker.calls[-2:] == ["finish completed", "close"]
    with StatsReader(tmp_path / "s.sqlite") as reader:
        assert reader.cursor("run", "list") == 6
    assert loop.state.failures == {}


def test_a_resumed_run_tells_a_tracker_nothing_twice(tmp_path: Path) -> None:
    class Fails:
        is_on = True

        def on_epoch_start(self, ctx: HookContext) -> None:
            if self.is_on and ctx.state.epoch == 5:
                raise RuntimeError("as if killed")

    fails, tracker, forgetful = Fails(), ListTracker(), ListTracker(tells=False)
    with pytest.raises(RuntimeError, match="as if killed"):
        train(tmp_path, {"list": tracker, "forgetful": forgetful}, fails)
    assert [epoch for epoch, _, _ in tracker.held] == [1, 2, 3, 4, 5]  # and the checkpoint is at 4
    fails.is_on = False

    train(tmp_path, {"list": tracker, "forgetful": forgetful}, fails, resume=True)

    assert tracker.held == curve(tmp_path)
    assert forgetful.held == curve(tmp_path)
    assert [epoch for epoch, _, _ in tracker.held] == [1, 2, 3, 4, 5, 6]


def test_health_is_a_service_for_the_display(tmp_path: Path) -> None:
    seen: list[Any] = []

    def look(ctx: HookContext) -> None:
        seen.append([each.name for each in ctx.services["trackers"].health()])

    train(tmp_path, lambda: {"a": ListTracker(), "b": ListTracker()}, look_at_epochs(look))

    assert seen[-1] == ["a", "b"]


def look_at_epochs(look: Callable[[HookContext], None]) -> object:
    return type("Looks", (), {"on_epoch_end": lambda self, ctx: look(ctx)})()


def test_without_trackers_it_does_nothing(tmp_path: Path) -> None:
    loop = train(tmp_path, {})

    assert loop.context.services["trackers"].health() == []


def test_a_hook_whose_statistics_never_come_changes_no_bit(tmp_path: Path) -> None:
    assert_pure(
        TrackerHook(
            lambda: {"list": ListTracker()}, stats_url=tmp_path / "none.sqlite", run_id="run", finish_seconds=0.05
        )
    )


def test_the_size_of_the_model_is_told(tmp_path: Path) -> None:
    class Looks(ListTracker):
        run: TrackedRun | None = None

        def open(self, run: TrackedRun) -> int | None:
            self.run = run
            return super().open(run)

    tracker = Looks()
    client = StatsClient(tmp_path / "s.sqlite", run_id="run", flush_seconds=0.02)
    model = SimpleNamespace(parameters=lambda: [SimpleNamespace(numel=lambda: 5), SimpleNamespace(numel=lambda: 7)])
    context = HookContext(state=TrainerState(seed=1), model=model)

    hooks = [StatsHook(client, name="mine", recipe="toy"), hook_in(tmp_path, {"list": tracker})]
    TrainingLoop(ToyWorkload(2), hooks, context=context).run()

    assert tracker.run is not None
    assert (tracker.run.name, tracker.run.recipe, tracker.run.model_parameters) == ("mine", "toy", 12)


def test_somebody_who_uses_a_tracker_can_stop_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hookloop.trackers.feed.ABORT_SECONDS", 0.0)
    tracker = ListTracker()
    tracker.reason = "the run has the tag 'abort'"

    loop = train(tmp_path, {"list": tracker}, look_at_epochs(lambda ctx: time.sleep(0.01)), epochs=3_000)

    assert loop.state.stop is not None
    assert (loop.state.stop.by, loop.state.stop.reason) == ("trackers", "the run has the tag 'abort'")
    assert tracker.held == curve(tmp_path)
    assert tracker.calls[-2:] == ["finish stopped", "close"]


def test_a_tracker_whose_name_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"got '\.\./x'"):
        tracker_lock(tmp_path, "../x")
