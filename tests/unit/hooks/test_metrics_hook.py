"""The bundle of everything there is to see, in the forms of both seeds, and the figures it adds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hookloop.core import CompositeHook, HookContext, HookManager, TrainingLoop
from hookloop.hooks import FiguresHook, LoggingHook, MetricsHook
from hookloop.monitoring import Stopwatch
from hookloop.stats import StatsClient, StatsReader
from hookloop.testing import Harness, ToyWorkload, assert_pure, assert_resumable
from tests.unit.hooks.injections import STEPS_PER_EPOCH, trainer


class RolloutsOf(ToyWorkload):
    """A toy whose rollouts have given statistics."""

    def __init__(self, *stats: dict[str, Any]) -> None:
        super().__init__(epochs=len(stats))
        self._stats = stats

    def run_epoch(self, loop: TrainingLoop) -> None:
        with loop.rollout():
            loop.state.rollout_stats = self._stats[loop.clocks.epochs]


class Rows:
    stage = "report"

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def on_epoch_end(self, ctx: HookContext) -> None:
        self.rows += [row["values"] for row in ctx.drain_metrics()]


def logged(hook: object, *stats: dict[str, Any]) -> list[dict[str, Any]]:
    rows = Rows()
    TrainingLoop(RolloutsOf(*stats), [hook, rows]).run()
    return rows.rows


def test_nested_statistics_are_flattened_and_lists_averaged() -> None:
    stats = {"return": [1.0, 3.0], "game": {"coins": [2, 4], "deep": {"won": True}}, "loss": torch.tensor([1.0, 5.0])}

    (row,) = logged(FiguresHook(), {**stats, "map": "cave", "array": np.array([4.0])})

    assert row == {
        "env_return": 2.0,
        "env_game/coins": 3.0,
        "env_game/deep/won": 1.0,
        "env_loss": 3.0,
        "env_array": 4.0,
    }


def test_statistics_are_means_over_everything_since_the_last_row_and_forgotten_then() -> None:
    rows = logged(FiguresHook("every 2 epochs"), {"a": [1.0]}, {"a": [4.0, 4.0]}, {"a": []}, {"a": [7.0]})

    assert rows == [{"env_a": 3.0}, {"env_a": 7.0}]


def test_what_is_not_finite_does_not_spoil_a_mean() -> None:
    assert logged(FiguresHook(), {"a": [1.0, float("nan")], "b": [float("inf")]}) == [{"env_a": 1.0}]


def test_gathered_statistics_survive_a_resume() -> None:
    assert_resumable(FiguresHook("every 3 epochs"))
    hook, resumed = FiguresHook("every 9 epochs"), FiguresHook("every 9 epochs")
    logged(hook, {"a": [1.0, 2.0]})

    resumed.load_state_dict(hook.state_dict())

    assert resumed.state_dict() == {"sums": {"a": [3.0, 2.0]}}


def test_a_rollout_ends_with_its_own_statistics() -> None:
    seen: list[tuple[int, int]] = []
    trained = trainer()

    def look(ctx: HookContext) -> None:
        seen.append((len(ctx.state.rollout_stats["return"]), ctx.state.clocks.episodes))

    trained.add_hook(look, name="look", on="rollout_end")
    trained.train(3 * STEPS_PER_EPOCH)

    totals = np.cumsum([count for count, _ in seen]).tolist()
    assert totals == [episodes for _, episodes in seen]
    assert totals[-1] > 0


# The bundle


def test_it_changes_nothing_and_resumes(tmp_path: Path) -> None:
    assert_pure(MetricsHook(verbose=False, heartbeat_file=tmp_path / "beat.json", monitor_seconds=0.001))
    assert_resumable(MetricsHook(verbose=False, monitor_seconds=None))


def test_a_real_trainer_logs_all_namespaces(tmp_path: Path) -> None:
    file = tmp_path / "stats.sqlite"
    hook = MetricsHook(
        None, StatsClient(file, run_id="run"), Stopwatch(), False, gradients="every 2 optimizer_steps",
        monitor_seconds=0.001, heartbeat_file=tmp_path / "beat.json", name="run",
    )  # fmt: skip
    trained = trainer(hook)
    trained.train(3 * STEPS_PER_EPOCH)

    with StatsReader(file) as reader:
        keys = reader.keys("run")
    namespaces = {key.partition("/")[0] for key in keys}
    assert {"overview", "losses", "experience", "hyperparameters", "monitor", "trainer_memory", "grad",
            "timing_per_epoch", "timing_cumulative", "metric", "env_return", "env_length"} <= namespaces  # fmt: skip
    assert {"metric/agent_step", "metric/epoch", "metric/total_time", "metric/train_time", "overview/reward",
            "timing_per_epoch/frac/train", "hyperparameters/optimizer/learning_rate"} <= set(keys)  # fmt: skip
    assert not trained.state.failures
    assert (tmp_path / "beat.json").exists()


def test_it_measures_with_the_timer_it_is_given() -> None:
    watch = Stopwatch()
    TrainingLoop(ToyWorkload(2), [MetricsHook(None, None, watch, False, monitor_seconds=None)]).run()

    assert watch.seconds("total") > 0


def test_nothing_configured_shows_and_keeps_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    loop = TrainingLoop(ToyWorkload(2), [MetricsHook(verbose=False, gradients=None, monitor_seconds=None)])
    loop.run()

    assert capsys.readouterr().out == ""
    assert loop.state.pending_metrics == []
    assert not loop.state.failures


def test_verbose_writes_lines_of_progress(capsys: pytest.CaptureFixture[str]) -> None:
    harness = Harness(MetricsHook(verbose=True, monitor_seconds=None))
    harness.start()
    harness.advance(seconds=1.5, env_steps=300)
    harness.epoch()
    harness.end()

    assert "step=300" in capsys.readouterr().out


def test_each_of_them_keeps_its_own_ranks_stage_and_failure_policy(tmp_path: Path) -> None:
    hooks = HookManager()
    hooks.add(MetricsHook(stats_client=lambda: StatsClient(tmp_path / "stats.sqlite", run_id="run")))
    rules = {entry.name: entry.options for entry in hooks.entries()}

    assert {name: (rule.ranks, rule.stage) for name, rule in rules.items()} == {
        "metrics/heartbeat": ("all", "observe"),
        "metrics/figures": ("main", "observe"),
        "metrics/stopwatch": ("main", "observe"),
        "metrics/gradients": ("main", "observe"),
        "metrics/machine": ("main", "observe"),
        "metrics/stats": ("main", "report"),
        "metrics/progress": ("main", "publish"),
    }
    assert {rule.on_error for rule in rules.values()} == {"disable"}


def test_one_that_fails_does_not_take_the_others_with_it() -> None:
    def broken(context: HookContext) -> dict[str, float]:
        raise ValueError(f"no luck at {context.step}")

    hook = MetricsHook(collectors=[broken], verbose=False, monitor_seconds=None)
    rows = Rows()
    loop = TrainingLoop(ToyWorkload(3), [hook, rows])
    loop.run()

    assert loop.state.failures["metrics/collect"].is_disabled
    assert [row["metric/epoch"] for row in rows.rows if "metric/epoch" in row] == [1, 2, 3]


def test_collectors_are_asked_every_so_many_steps_in_the_form_of_seed_002() -> None:
    asked: list[int] = []

    def speed(context: HookContext) -> dict[str, float]:
        asked.append(context.step)
        return {"speed": context.step * 2.0}

    metrics = MetricsHook(frequency=25, collectors=[speed], verbose=False, monitor_seconds=None)
    harness = Harness(CompositeHook([LoggingHook(frequency=50), metrics]))
    for _ in range(60):
        harness.step()

    assert asked == [25, 50]
    assert [value for name, value in harness.metrics.items() if name.endswith("speed")] == [100.0]


class WandbRun:
    """A run of W&B that keeps what it is told."""

    offline = False

    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []
        self.summary: dict[str, Any] = {}
        self.axes: list[str] = []

    def define_metric(self, name: str, **options: Any) -> None:
        self.axes.append(name)

    def log(self, row: dict[str, float]) -> None:
        self.rows.append(row)
        self.summary.update(row)

    def finish(self) -> None:
        raise AssertionError("whoever began the run finishes it")


def test_a_run_of_wandb_is_told_everything_with_our_clocks(tmp_path: Path) -> None:
    run = WandbRun()
    hook = MetricsHook(run, StatsClient(tmp_path / "s.sqlite", run_id="run"), verbose=False, monitor_seconds=None)
    TrainingLoop(ToyWorkload(3), [hook]).run()

    assert [row["metric/epoch"] for row in run.rows if "loss" in row] == [1, 2, 3]
    assert "metric/agent_step" in run.axes
    assert run.summary["status"] == "completed"


def test_a_run_of_wandb_needs_no_statistics_of_ours() -> None:
    run = WandbRun()
    TrainingLoop(ToyWorkload(3), [MetricsHook(run, verbose=False, monitor_seconds=None)]).run()

    assert [row["metric/epoch"] for row in run.rows if "loss" in row] == [1, 2, 3]
