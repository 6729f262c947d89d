"""Seed 002: the worker's hooks. Every example runs on a real worker, with only its import line changed.

One test or more for each row of the feature table; the row stands in the name.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Optional

import pytest

from hookloop.curriculum import Curriculum, CurriculumConfig, EvaluationStats, Lesson
from hookloop.hooks import (
    CheckpointHook,
    CompositeHook,
    EvaluationHook,
    HealthMonitorHook,
    Hook,
    HookContext,
    HookManager,
    LoggingHook,
    MetricsHook,
    PeriodicHook,
    load_hooks,
)
from hookloop.testing import ManualClock
from hookloop.worker import (
    LocalWeights,
    ReplayBuffer,
    ReplayBufferConfig,
    RolloutWorker,
    WorkerConfig,
)
from tests.scripted_source import ScriptedSource, lessons, worker_config

REWARDS = {"addition": 1.0, "division": 0.0}


class FakeTracker:
    def __init__(self) -> None:
        self.logged: list[tuple[dict[str, Any], int | None]] = []

    def log(self, metrics: Any, *, step: int | None = None) -> None:
        self.logged.append((dict(metrics), step))


class Results:
    """Keeps the metrics that hooks have returned, by step of the worker."""

    stage = "report"

    def __init__(self) -> None:
        self.by_step: dict[int, dict[str, Any]] = {}

    def on_epoch_end(self, ctx: HookContext) -> None:
        self.by_step[ctx.readings["worker_steps"]] = {}
        for row in ctx.drain_metrics():
            self.by_step[row["clocks"]["worker_steps"]].update(row["values"])


def make_worker(**changes: Any) -> RolloutWorker:
    config = worker_config(**changes)
    return RolloutWorker(config, watch_signals=False)


def two_lessons(**settings: Any) -> RolloutWorker:
    return make_worker(rewards=REWARDS, curriculum=lessons("addition", "division", **settings))


def source_of(worker: RolloutWorker) -> ScriptedSource:
    assert isinstance(worker.source, ScriptedSource)
    return worker.source


# The hooks of the seed, as it writes them


class CustomMonitoringHook(PeriodicHook):
    """Monitor rollout generation health."""

    def __init__(self):
        super().__init__(frequency=25)
        self.metrics = []

    def run(self, context: HookContext) -> Optional[dict[str, Any]]:  # noqa: UP045  # as the seed writes it
        # Collect custom metrics
        metrics = {
            "monitoring.step": context.step,
            "monitoring.lesson": context.lesson_id,
            "monitoring.timestamp": time.time(),
        }
        self.metrics.append(metrics)

        # Log to worker's tracker
        context.worker.tracker.log(metrics, step=context.step)
        return metrics


class TestEvaluationHook(Hook):
    __test__ = False

    def __init__(self):
        self.evaluations = []

    def should_run(self, context):
        return context.step % 5 == 0

    def run(self, context):
        result = {"test_eval": context.step}
        self.evaluations.append(result)
        return result


class ConfigurableHook(PeriodicHook):
    def __init__(self, frequency=100, threshold=0.9, enabled=True):
        super().__init__(frequency)
        self.threshold = threshold
        self.enabled = enabled
        self.ran = []

    def should_run(self, context):
        return self.enabled and super().should_run(context)

    def run(self, context):
        self.ran.append(context.step)


class ConditionalHook(Hook):
    def should_run(self, context):
        # Run only when specific conditions are met
        return (
            context.step > 1000 and context.lesson_id == "advanced_lesson" and context.metadata.get("performance") > 0.8
        )

    ran_at: int | None = None

    def run(self, context):
        self.ran_at = self.ran_at or context.step


class StatefulHook(PeriodicHook):
    def __init__(self):
        super().__init__(frequency=50)
        self.state = {"runs": 0, "total_reward": 0}

    def run(self, context):
        self.state["runs"] += 1
        reward = context.metadata.get("reward", 0)
        self.state["total_reward"] += reward

        return {"avg_reward": self.state["total_reward"] / self.state["runs"]}


class HealthMonitoringHook(HealthMonitorHook):
    def __init__(self):
        super().__init__(frequency=10, on="step_end")


# The rows


def test_r1_a_hook_is_a_pair_of_should_run_and_run() -> None:
    class BareHook(Hook):
        pass

    context = HookContext(step=3)

    assert BareHook().should_run(context) is True
    assert BareHook().run(context) is None
    assert TestEvaluationHook().run(context) == {"test_eval": 3}


def test_r2_the_context_has_the_worker_the_step_a_random_stream_the_lesson_and_metadata() -> None:
    seen: dict[str, Any] = {}

    class Looking(Hook):
        def run(self, context):
            seen.update(worker=context.worker, step=context.step, lesson=context.lesson_id, batch=context.batch)
            seen.update(metadata=dict(context.metadata), draw=context.rng.random())

    worker = make_worker(rewards={"addition": 2.0}, curriculum=lessons("addition"))
    worker.register_hook(Looking())
    worker.run(3)

    assert (seen["worker"], seen["step"], seen["lesson"]) == (worker, 3, "addition")
    assert seen["metadata"]["reward"] == 2.0
    assert 0.5 < seen["metadata"]["performance"] <= 1.0
    assert [rollout.reward for rollout in seen["batch"]] == [2.0, 2.0]


def test_r2_each_hook_draws_from_a_stream_of_its_own_and_none_changes_what_is_generated() -> None:
    class Drawing(Hook):
        def __init__(self, name: str) -> None:
            self.name = name
            self.draws: list[float] = []

        def run(self, context):
            self.draws.append(context.rng.random())

    def seeds_and_draws(*names: str) -> tuple[list[Any], list[float]]:
        worker = make_worker()
        hooks = [Drawing(name) for name in names]
        for hook in hooks:
            worker.register_hook(hook)
        worker.run(3)
        return source_of(worker).generated, hooks[0].draws

    alone, draws = seeds_and_draws("first")
    together, same_draws = seeds_and_draws("first", "second")

    assert together == alone
    assert same_draws == draws
    assert len(set(draws)) == 3


def test_r3_the_manager_registers_removes_clears_and_merges_under_the_names_of_hooks() -> None:
    manager = HookManager()
    hook, other = TestEvaluationHook(), TestEvaluationHook()
    manager.register_hook(hook)
    manager.register_hook(other)

    results = manager.run_hooks(HookContext(step=5))

    assert results == {"TestEvaluationHook/test_eval": 5, "TestEvaluationHook_2/test_eval": 5}
    assert len(manager) == 2
    assert (manager.unregister_hook(hook), manager.unregister_hook(hook)) == (True, False)
    manager.clear_hooks()
    assert len(manager) == 0


def test_r4_a_worker_hands_its_hooks_out_as_a_copy() -> None:
    worker = make_worker()
    health_monitor = HealthMonitoringHook()

    # Add hooks during runtime
    worker.register_hook(health_monitor)

    # Get current hooks
    current_hooks = worker.get_hooks()
    current_hooks.clear()
    assert worker.get_hooks() == [health_monitor]

    # Remove hooks when no longer needed
    assert worker.unregister_hook(health_monitor) is True
    assert worker.unregister_hook(health_monitor) is False

    # Clear all hooks (useful for testing)
    worker.register_hook(LoggingHook(frequency=100))
    worker.clear_hooks()
    assert worker.get_hooks() == []


@pytest.mark.parametrize(("step", "expected"), [(0, False), (100, False), (149, False), (150, True), (200, True)])
def test_r5_a_periodic_hook_fires_on_multiples_after_its_start(step: int, expected: bool) -> None:
    assert PeriodicHook(frequency=50, start_step=100).should_run(HookContext(step=step)) is expected


def test_r5_a_periodic_hook_counts_steps_of_the_worker_and_not_of_its_environments() -> None:
    worker = make_worker()
    hook = CustomMonitoringHook()
    worker.register_hook(hook)

    worker.run(80)

    assert [metrics["monitoring.step"] for metrics in hook.metrics] == [25, 50, 75]
    assert worker.state.clocks.env_steps == 80 * 2 * 3


def test_r6_the_built_in_evaluation_hook_has_the_seeds_arguments() -> None:
    hook = EvaluationHook(
        frequency=100,  # How often to run
        n_examples=64,  # Number of evaluation examples
        eval_type="eval",  # Type of evaluation
        evaluate_all_lessons=True,  # Evaluate all or just current lesson
    )
    by_position = EvaluationHook(100, 64, "eval", False, 150)

    assert [step for step in (100, 150, 200) if hook.should_run(HookContext(worker=object(), step=step))] == [100, 200]
    steps = [step for step in (100, 150, 200) if by_position.should_run(HookContext(worker=object(), step=step))]
    assert steps == [200]


def test_r6_the_basic_usage_evaluates_all_lessons_under_its_own_label() -> None:
    config = worker_config(rewards=REWARDS, curriculum=lessons("addition", "division", eval_frequency=0), steps=100)

    # Create worker with config
    worker = RolloutWorker(config)
    worker.clear_hooks()
    results = Results()
    worker.register_hook(results)

    # Register a custom evaluation hook
    custom_eval = EvaluationHook(frequency=50, n_examples=32, eval_type="custom_eval")
    worker.register_hook(custom_eval)

    # Add logging
    logging_hook = LoggingHook(frequency=100)
    worker.register_hook(logging_hook)
    worker.run()

    assert source_of(worker).played == [("addition", 32), ("division", 32)] * 2
    assert results.by_step[50]["EvaluationHook/custom_eval/addition/success_rate"] == 1.0
    assert results.by_step[50]["EvaluationHook/custom_eval/success_rate"] == 0.5
    assert results.by_step[51] == {}
    assert worker.curriculum is not None
    assert worker.curriculum.evaluated_success("division") == 0.0


def test_r7_the_curriculum_says_how_often_the_default_hooks_evaluate() -> None:
    # No changes needed - default hooks are registered automatically
    worker = two_lessons()
    assert worker.curriculum is not None

    # Micro-eval and full eval will run as before
    worker.run(100)

    played = source_of(worker).played
    assert [count for _, count in played] == [4] * 10 + [64, 64]
    assert played[-2:] == [("addition", 64), ("division", 64)]
    assert worker.curriculum.evaluation["addition"].episodes == 64  # told of the full one alone


@pytest.mark.parametrize("off", [0, -1, None])
def test_r7_a_frequency_that_is_none_or_not_above_0_leaves_an_evaluation_out(off: int | None) -> None:
    assert two_lessons(micro_eval_frequency=off, eval_frequency=off).get_hooks() == []
    assert len(two_lessons(micro_eval_frequency=off).get_hooks()) == 1


def test_r7_the_migration_guides_hooks_run_beside_each_other() -> None:
    worker = two_lessons(micro_eval_frequency=0, eval_frequency=0)
    results = Results()
    worker.register_hook(results)

    # After: Add custom hooks without changing config
    worker.register_hook(EvaluationHook(frequency=5, n_examples=1))
    worker.register_hook(EvaluationHook(frequency=50, n_examples=2))
    worker.run(50)

    assert len(source_of(worker).played) == 2 * 10 + 2
    assert {name.partition("/")[0] for name in results.by_step[50]} == {"EvaluationHook", "EvaluationHook_2"}


def test_r8_an_evaluation_says_for_each_lesson_how_often_it_succeeds_what_it_earns_and_how_many_were_played() -> None:
    worker = two_lessons(micro_eval_frequency=0, eval_frequency=10, eval_n_examples=8)
    results = Results()
    worker.register_hook(results)

    worker.run(10)

    found = {name.partition("/eval/")[2]: value for name, value in results.by_step[10].items()}
    assert (found["addition/success_rate"], found["division/success_rate"]) == (1.0, 0.0)
    assert (found["addition/return/mean"], found["division/return/mean"]) == (1.0, 0.0)
    assert (found["addition/episodes"], found["division/episodes"]) == (8.0, 8.0)


def test_r9_logging_metrics_checkpoint_and_composite_hooks_exist_and_run_in_a_worker(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from hookloop.checkpoints import CheckpointManager

    worker = make_worker(steps=50)
    worker.register_hook(LoggingHook(frequency=50))
    worker.register_hook(MetricsHook(frequency=25))
    worker.register_hook(CheckpointHook(CheckpointManager(tmp_path), 20))

    with caplog.at_level(logging.INFO, "hookloop.hooks.logging"):
        worker.run()

    assert "worker_steps=50" in caplog.text
    assert CheckpointManager(tmp_path).load()[0].step == 50


def test_r9_a_composite_runs_each_child_on_its_own_steps_and_keeps_their_results_apart() -> None:
    worker = two_lessons(micro_eval_frequency=0, eval_frequency=0)
    results = Results()
    worker.register_hook(results)

    # Combine multiple hooks into one
    composite = CompositeHook(
        [EvaluationHook(frequency=100, n_examples=1), LoggingHook(frequency=50), StatefulHook(), TestEvaluationHook()]
    )
    worker.register_hook(composite)
    worker.run(100)

    assert results.by_step[5] == {"CompositeHook/TestEvaluationHook/test_eval": 5}
    assert results.by_step[100]["CompositeHook/EvaluationHook/eval/success_rate"] == 0.5
    assert "CompositeHook/StatefulHook/avg_reward" in results.by_step[50]
    assert worker.unregister_hook(composite)
    assert worker.hook_manager.order() == ["Results"]


def test_r10_a_custom_monitoring_hook_reaches_the_workers_tracker() -> None:
    tracker = FakeTracker()
    config = worker_config(curriculum=lessons("addition", micro_eval_frequency=0), steps=50)
    worker = RolloutWorker(config, tracker=tracker)

    # Register the custom hook
    worker.register_hook(CustomMonitoringHook())
    worker.run()

    assert [step for _, step in tracker.logged] == [25, 50]
    assert tracker.logged[0][0]["monitoring.lesson"] == "addition"


def test_r10_what_is_logged_to_the_tracker_of_a_worker_joins_the_metrics_of_the_run() -> None:
    worker = make_worker()
    rows: list[dict[str, Any]] = []

    worker.register_hook(CustomMonitoringHook())
    worker.add_hook(lambda ctx: rows.extend(ctx.drain_metrics()), name="report", on="epoch_end", stage="report")
    worker.run(25)

    logged = [row for row in rows if "monitoring.step" in row["values"]]
    assert [row["clocks"]["worker_steps"] for row in logged] == [25]


def test_r10_a_configurable_hook_is_switched_by_its_own_flag_at_any_time() -> None:
    worker = make_worker()
    hook = ConfigurableHook(frequency=10, enabled=False)
    worker.register_hook(hook)
    worker.run(20)

    hook.enabled = True
    worker.run(40)

    assert hook.ran == [30, 40]


def test_r10_a_conditional_hook_decides_by_step_lesson_and_metadata_that_the_loop_fills_in() -> None:
    off = {"micro_eval_frequency": 0, "eval_frequency": 0}
    worker = make_worker(rewards={"advanced_lesson": 1.0}, curriculum=lessons("advanced_lesson", **off))
    other = make_worker(rewards={"basic": 1.0}, curriculum=lessons("basic", **off))
    hook, idle = ConditionalHook(), ConditionalHook()
    worker.register_hook(hook)
    other.register_hook(idle)

    worker.run(1010)
    other.run(1010)

    assert (hook.ran_at, idle.ran_at) == (1001, None)


def test_r10_a_stateful_hook_keeps_its_average_and_its_state_is_saved() -> None:
    worker = make_worker(rewards={"": 2.0})
    hook, results = StatefulHook(), Results()
    worker.register_hook(hook)
    worker.register_hook(results)

    worker.run(100)

    assert results.by_step[100] == {"StatefulHook/avg_reward": 2.0}
    saved = worker.state_dict()["hooks"]["hooks"]["StatefulHook"]["state"]
    assert saved == {"state": {"runs": 2, "total_reward": 4.0}}


def test_r11_hooks_come_and_go_while_their_event_runs() -> None:
    worker = make_worker()
    other, late = TestEvaluationHook(), TestEvaluationHook()

    class OneShot(Hook):
        runs = 0

        def run(self, context):
            OneShot.runs += 1
            context.worker.unregister_hook(self)
            context.worker.register_hook(late)

    worker.register_hook(OneShot())
    worker.register_hook(other)
    worker.run(5)

    assert OneShot.runs == 1
    assert other.evaluations == late.evaluations == [{"test_eval": 5}]


def test_r12_a_batch_that_comes_back_empty_runs_no_hook_again() -> None:
    waited: list[float] = []
    worker = RolloutWorker(worker_config(), watch_signals=False, sleep=waited.append)
    source_of(worker).empty_at = {6, 7}
    hook, seen = TestEvaluationHook(), []
    worker.register_hook(hook)
    worker.add_hook(lambda ctx: seen.append(ctx.step), on="step_end", name="seen")

    result = worker.run(10)

    assert seen == list(range(1, 11))
    assert hook.evaluations == [{"test_eval": 5}, {"test_eval": 10}]
    assert (result.run.empty_batches, len(waited)) == (2, 2)


def test_r12_a_step_that_is_fired_again_runs_no_hook_again() -> None:
    manager = HookManager()
    hook = TestEvaluationHook()
    manager.register_hook(hook)

    for _ in range(3):
        manager.run_hooks(HookContext(step=5))

    assert len(hook.evaluations) == 1


def test_r13_one_failing_hook_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    worker = make_worker()

    class Broken(Hook):
        def run(self, context):
            raise OSError("tracker is down")

    hook = TestEvaluationHook()
    worker.register_hook(Broken())
    worker.register_hook(hook)

    with caplog.at_level(logging.ERROR, "hookloop.hooks"):
        result = worker.run(5)

    assert hook.evaluations == [{"test_eval": 5}]
    assert "tracker is down" in caplog.text
    assert result.loop.failures["Broken"].count == 5


def test_r13_a_hook_that_says_so_stops_the_worker_when_it_fails() -> None:
    class Essential(Hook):
        on_error = "raise"

        def run(self, context):
            raise OSError("disk full")

    worker = make_worker()
    worker.register_hook(Essential())

    with pytest.raises(OSError, match="disk full"):
        worker.run(5)


def test_r14_a_test_hook_replaces_monkey_patching() -> None:
    worker = make_worker()

    test_hook = TestEvaluationHook()
    worker.register_hook(test_hook)
    # Run worker and check test_hook.evaluations
    worker.run(12)

    assert test_hook.evaluations == [{"test_eval": 5}, {"test_eval": 10}]
    # run test
    worker.unregister_hook(test_hook)
    worker.run(20)
    assert len(test_hook.evaluations) == 2


def test_r14_a_hook_can_be_unit_tested_with_a_context_of_its_own() -> None:
    class CustomHook(PeriodicHook):
        def __init__(self):
            super().__init__(frequency=100)

        def run(self, context):
            return {"expected_key": context.step}

    mock_worker = SimpleNamespace()
    hook = CustomHook()
    context = HookContext(worker=mock_worker, step=100, rng=[0, 42])

    # Test should_run logic
    assert hook.should_run(context)

    # Test run logic
    result = hook.run(context)
    assert "expected_key" in result


def test_r15_debug_logging_by_logger_name_shows_each_hook_that_runs(caplog: pytest.LogCaptureFixture) -> None:
    worker = make_worker()
    worker.register_hook(TestEvaluationHook())

    with caplog.at_level(logging.DEBUG, "hookloop.hooks"):
        worker.run(5)

    assert [record.getMessage() for record in caplog.records] == ["TestEvaluationHook runs at step_end, step 5"]


def test_r16_hooks_run_in_the_order_of_their_priorities() -> None:
    ran: list[str] = []
    worker = make_worker()
    worker.add_hook(lambda: ran.append("later"), name="later", on="step_end")
    worker.add_hook(lambda: ran.append("first"), name="first", on="step_end", priority=10)

    worker.run(1)

    assert ran == ["first", "later"]


def test_r17_a_hook_in_the_background_delivers_its_metrics_with_the_step_it_saw() -> None:
    worker = make_worker()
    rows: list[Any] = []

    class Slow(PeriodicHook):
        background = True

        def run(self, context):
            return {"step": context.step}

    worker.register_hook(Slow(frequency=5))
    worker.add_hook(lambda ctx: rows.extend(ctx.drain_metrics()), name="report", on="training_end")
    worker.add_hook(lambda: None, name="keeper", on="epoch_end", stage="report")
    worker.run(5)

    assert [(row["values"], row["clocks"]["worker_steps"]) for row in rows] == [({"Slow/step": 5}, 5)]


def test_r18_a_hook_runs_after_those_whose_values_it_needs() -> None:
    worker = make_worker()
    seen: list[Any] = []

    class Reader(Hook):
        needs = ("difficulty",)

        def run(self, context):
            seen.append(context.value("difficulty"))

    class Writer(Hook):
        provides = ("difficulty",)

        def run(self, context):
            context.values["difficulty"] = context.step * 2

    worker.register_hook(Reader())
    worker.register_hook(Writer())
    worker.run(2)

    assert seen == [2, 4]


def test_r19_and_r20_hooks_of_registered_names_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "hooks.yaml"
    file.write_text(
        "hooks:\n  - use: logging\n    args: {frequency: 10}\n  - use: evaluation\n    args: {frequency: 5}\n"
    )
    worker = two_lessons(micro_eval_frequency=0, eval_frequency=0)

    load_hooks(file, worker.hook_manager)
    worker.run(5)

    assert [type(hook).__name__ for hook in worker.get_hooks()] == ["LoggingHook", "EvaluationHook"]
    assert len(source_of(worker).played) == 2


def test_r20_the_default_hooks_are_a_configuration_too() -> None:
    assert two_lessons().hook_manager.to_config()[0]["args"] == {
        "frequency": 10,
        "n_examples": 4,
        "eval_type": "micro_eval",
        "evaluate_all_lessons": False,
    }


def test_r21_every_hook_has_a_measured_cost_for_each_event() -> None:
    clock = ManualClock()
    worker = RolloutWorker(worker_config(), watch_signals=False, time_ns=clock)

    class Slow(PeriodicHook):
        def run(self, context):
            clock.advance(0.25)

    worker.register_hook(Slow(frequency=2))
    result = worker.run(4)

    (cost,) = [cost for cost in result.loop.costs if cost.hook == "Slow"]
    assert (cost.event, cost.calls, cost.total_ns) == ("step_end", 2, 500_000_000)


def test_r22_the_page_lists_the_whole_interface_of_a_worker() -> None:
    page = (Path(__file__).parents[2] / "docs" / "rollout_workers.md").read_text(encoding="utf-8")

    public = [name for name in vars(RolloutWorker) if not name.startswith("_")]
    for name in (*public, *WorkerConfig.model_fields, *ReplayBufferConfig.model_fields):
        assert f"`{name}`" in page or f"`{name}(" in page, name


def test_r23_a_health_monitor_watches_the_lessons_of_a_worker(caplog: pytest.LogCaptureFixture) -> None:
    config = CurriculumConfig(
        lessons={"basics": Lesson()}, plateau_window=3, plateau_episodes=5, micro_eval_frequency=0, eval_frequency=0
    )
    worker = make_worker(curriculum=config)
    curriculum = worker.curriculum
    assert isinstance(curriculum, Curriculum)
    curriculum.update_from_training({"basics": [1.0] * 40})
    curriculum.update_from_evaluation({"basics": EvaluationStats(successes=64, episodes=64)})
    curriculum.update_from_evaluation({"basics": EvaluationStats(successes=52, episodes=64)})
    results = Results()
    worker.register_hook(results)

    # Add hooks during runtime
    health_monitor = HealthMonitoringHook()
    worker.register_hook(health_monitor)
    worker.run(10)

    # Remove hooks when no longer needed
    assert worker.unregister_hook(health_monitor)

    assert results.by_step[9] == {}
    assert results.by_step[10]["HealthMonitoringHook/regression"] == 1
    assert "lesson basics: regression: graduated, but succeeds only 0.81" in caplog.text


def test_r24_a_worker_follows_weights_by_version_feeds_a_buffer_and_stops_with_its_run() -> None:
    weights, states = LocalWeights(), iter(["running", "running", "running", "completed"])
    buffer = ReplayBuffer(ReplayBufferConfig(max_age_steps=1))

    def status() -> Any:
        state = next(states)
        return SimpleNamespace(state=state, is_over=state == "completed", train_steps=7, attempt=2)

    config = worker_config(weights="receive", status_seconds=0, curriculum=lessons("addition"))
    worker = RolloutWorker(config, weights=weights, status=status, deliver=buffer.add, watch_signals=False)
    updates: list[int] = []

    def serve_the_next(ctx: HookContext) -> None:
        updates.append(ctx.step)
        weights.serve(ctx.step + 1, {})
        buffer.begin_step(ctx.step)

    worker.add_hook(serve_the_next, name="trainer", on="policy_updated")
    weights.serve(1, {})
    result = worker.run()

    assert updates == source_of(worker).versions == [1, 2, 3]
    assert result.outcome == "stopped"
    assert result.loop.stop is not None
    assert result.loop.stop.reason == "the run has ended: completed"
    assert worker.state.clocks.policy_version == 3
    assert buffer.sizes == {"addition": 4}  # of versions 2 and 3; those of version 1 have become too old
    assert buffer.lost["stale_steps"] == 2
