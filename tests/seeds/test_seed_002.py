"""Seed 002: the worker's hooks. Every example runs with only its import line changed."""

from __future__ import annotations

import logging
import time
from types import SimpleNamespace
from typing import Any, Optional

import pytest

from hookloop.curriculum import Curriculum, CurriculumConfig, EvaluationStats, Lesson
from hookloop.evaluation import LessonScore, Played, PlayedEpisode, Wanted
from hookloop.hooks import (
    CompositeHook,
    EvaluationHook,
    HealthMonitorHook,
    Hook,
    HookContext,
    HookManager,
    LoggingHook,
    PeriodicHook,
    create_default_evaluation_hooks,
)


class FakeTracker:
    def __init__(self) -> None:
        self.logged: list[tuple[dict[str, Any], int]] = []

    def log(self, metrics: dict[str, Any], step: int) -> None:
        self.logged.append((metrics, step))


class FakeWorker:
    """A worker reduced to what hooks see of it: a tracker, the four methods, and steps."""

    def __init__(self) -> None:
        self.tracker = FakeTracker()
        self.hook_manager = HookManager(on_error="warn")
        self.results: dict[int, dict[str, Any]] = {}

    def register_hook(self, hook: object) -> None:
        self.hook_manager.register_hook(hook)

    def unregister_hook(self, hook: object) -> bool:
        return self.hook_manager.unregister_hook(hook)

    def clear_hooks(self) -> None:
        self.hook_manager.clear_hooks()

    def get_hooks(self) -> list[object]:
        return self.hook_manager.get_hooks()

    def run(self, steps: int, lesson_id: str = "lesson", **metadata: Any) -> None:
        for step in range(1, steps + 1):
            context = HookContext(worker=self, step=step, rng=None, lesson_id=lesson_id, metadata=metadata)
            self.results[step] = self.hook_manager.run_hooks(context)


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


class StatefulHook(PeriodicHook):
    def __init__(self):
        super().__init__(frequency=50)
        self.state = {"runs": 0, "total_reward": 0}

    def run(self, context):
        self.state["runs"] += 1
        reward = context.metadata.get("reward", 0)
        self.state["total_reward"] += reward

        return {"avg_reward": self.state["total_reward"] / self.state["runs"]}


def test_a_custom_monitoring_hook_runs_every_25_steps_and_reaches_the_workers_tracker() -> None:
    worker = FakeWorker()
    hook = CustomMonitoringHook()
    worker.register_hook(hook)

    worker.run(80, lesson_id="addition")

    assert [metrics["monitoring.step"] for metrics in hook.metrics] == [25, 50, 75]
    assert [step for _, step in worker.tracker.logged] == [25, 50, 75]
    assert worker.results[25]["CustomMonitoringHook/monitoring.lesson"] == "addition"
    assert worker.results[26] == {}


def test_a_test_hook_replaces_monkey_patching() -> None:
    worker = FakeWorker()
    test_hook = TestEvaluationHook()
    worker.register_hook(test_hook)

    worker.run(12)

    assert test_hook.evaluations == [{"test_eval": 5}, {"test_eval": 10}]


def test_hooks_are_managed_while_the_worker_runs() -> None:
    worker = FakeWorker()
    health_monitor = TestEvaluationHook()

    worker.register_hook(health_monitor)
    current_hooks = worker.get_hooks()
    current_hooks.clear()

    assert worker.get_hooks() == [health_monitor]
    assert worker.unregister_hook(health_monitor) is True
    assert worker.unregister_hook(health_monitor) is False
    worker.register_hook(LoggingHook(frequency=100))
    worker.clear_hooks()
    assert worker.get_hooks() == []


def test_a_hook_may_remove_itself_while_its_event_runs() -> None:
    worker = FakeWorker()

    class OneShot(Hook):
        runs = 0

        def run(self, context):
            OneShot.runs += 1
            context.worker.unregister_hook(self)

    other = TestEvaluationHook()
    worker.register_hook(OneShot())
    worker.register_hook(other)

    worker.run(5)

    assert OneShot.runs == 1
    assert other.evaluations == [{"test_eval": 5}]


def test_a_configurable_hook_is_switched_by_its_own_flag_at_any_time() -> None:
    worker = FakeWorker()
    hook = ConfigurableHook(frequency=10, enabled=False)
    worker.register_hook(hook)
    worker.run(20)

    hook.enabled = True
    for step in range(21, 41):
        worker.hook_manager.run_hooks(HookContext(worker=worker, step=step))

    assert hook.ran == [30, 40]


@pytest.mark.parametrize(
    ("step", "lesson_id", "performance", "expected"),
    [
        (1001, "advanced_lesson", 0.9, True),
        (1000, "advanced_lesson", 0.9, False),
        (1001, "basic", 0.9, False),
        (1001, "advanced_lesson", 0.8, False),
    ],
)
def test_a_conditional_hook_decides_by_step_lesson_and_metadata(step, lesson_id, performance, expected) -> None:
    hook = ConditionalHook()
    HookManager().register_hook(hook)
    context = HookContext(step=step, lesson_id=lesson_id, metadata={"performance": performance})

    assert hook.should_run(context) is expected


def test_a_stateful_hook_keeps_its_average_and_its_state_is_saved() -> None:
    worker = FakeWorker()
    hook = StatefulHook()
    worker.register_hook(hook)

    worker.run(100, reward=2.0)

    assert worker.results[100] == {"StatefulHook/avg_reward": 2.0}
    saved = worker.hook_manager.state_dict()["hooks"]["StatefulHook"]["state"]
    assert saved == {"state": {"runs": 2, "total_reward": 4.0}}


def test_a_composite_runs_each_child_on_its_own_steps_and_keeps_their_results_apart() -> None:
    worker = FakeWorker()
    composite = CompositeHook([TestEvaluationHook(), StatefulHook(), LoggingHook(frequency=50)])
    worker.register_hook(composite)

    worker.run(50)

    assert worker.get_hooks() == [composite]
    assert worker.results[5] == {"CompositeHook/TestEvaluationHook/test_eval": 5}
    assert worker.results[50] == {
        "CompositeHook/TestEvaluationHook/test_eval": 50,
        "CompositeHook/StatefulHook/avg_reward": 0.0,
    }
    assert worker.unregister_hook(composite)
    assert worker.hook_manager.order() == []


def test_a_hook_can_be_unit_tested_with_a_context_of_its_own() -> None:
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


@pytest.mark.parametrize(("step", "expected"), [(0, False), (100, False), (149, False), (150, True), (200, True)])
def test_a_periodic_hook_fires_on_multiples_after_its_start(step: int, expected: bool) -> None:
    assert PeriodicHook(frequency=50, start_step=100).should_run(HookContext(step=step)) is expected


def test_two_hooks_of_one_class_do_not_overwrite_each_others_results() -> None:
    worker = FakeWorker()
    worker.register_hook(TestEvaluationHook())
    worker.register_hook(TestEvaluationHook())

    worker.run(5)

    assert worker.results[5] == {"TestEvaluationHook/test_eval": 5, "TestEvaluationHook_2/test_eval": 5}


def test_a_step_that_comes_again_runs_no_hook_again() -> None:
    worker = FakeWorker()
    hook, periodic = TestEvaluationHook(), StatefulHook()
    worker.register_hook(hook)
    worker.register_hook(periodic)
    worker.run(50)

    worker.hook_manager.run_hooks(HookContext(worker=worker, step=50))

    assert len(hook.evaluations) == 10
    assert periodic.state["runs"] == 1


def test_one_failing_hook_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    worker = FakeWorker()

    class Broken(Hook):
        def run(self, context):
            raise OSError("tracker is down")

    hook = TestEvaluationHook()
    worker.register_hook(Broken())
    worker.register_hook(hook)

    with caplog.at_level(logging.ERROR, "hookloop.hooks"):
        worker.run(5)

    assert hook.evaluations == [{"test_eval": 5}]
    assert "tracker is down" in caplog.text


def test_debug_logging_by_logger_name_shows_each_hook_that_runs(caplog: pytest.LogCaptureFixture) -> None:
    worker = FakeWorker()
    worker.register_hook(TestEvaluationHook())

    with caplog.at_level(logging.DEBUG, "hookloop.hooks"):
        worker.run(5)

    assert [record.getMessage() for record in caplog.records] == ["TestEvaluationHook runs at step_end, step 5"]


class HealthMonitoringHook(HealthMonitorHook):
    def __init__(self):
        super().__init__(frequency=10, on="step_end")


def test_a_health_monitor_watches_the_lessons_of_a_worker(caplog: pytest.LogCaptureFixture) -> None:
    worker = FakeWorker()
    curriculum = Curriculum(CurriculumConfig(lessons={"basics": Lesson()}, plateau_window=3, plateau_episodes=5))
    curriculum.update_from_training({"basics": [1.0] * 40})
    curriculum.update_from_evaluation({"basics": EvaluationStats(successes=64, episodes=64)})
    assert curriculum.state("basics") == "graduated"
    curriculum.update_from_evaluation({"basics": EvaluationStats(successes=52, episodes=64)})

    # Add hooks during runtime
    health_monitor = HealthMonitoringHook()
    worker.register_hook(health_monitor)
    for step in (9, 10):
        context = HookContext(worker=worker, step=step, lesson_id="basics")
        context.state.curriculum = curriculum.summary()
        worker.results[step] = worker.hook_manager.run_hooks(context)

    # Remove hooks when no longer needed
    assert worker.unregister_hook(health_monitor)

    assert worker.results[9] == {}
    assert worker.results[10]["HealthMonitoringHook/regression"] == 1
    assert "lesson basics: regression: graduated, but succeeds only 0.81" in caplog.text


def test_the_curriculum_says_how_often_the_default_hooks_evaluate() -> None:
    config = CurriculumConfig(lessons={"basics": Lesson()})

    assert (config.micro_eval_frequency, config.micro_eval_n_examples) == (10, 4)
    assert (config.eval_frequency, config.eval_n_examples) == (100, 64)


class EvaluatedWorker(FakeWorker):
    """A worker whose policy can be asked to play: the return of an episode says in which lesson it was."""

    def __init__(self) -> None:
        super().__init__()
        self.curriculum = SimpleNamespace(
            lessons={name: SimpleNamespace(env=reward) for name, reward in (("addition", 1.0), ("division", 0.0))},
            update_from_evaluation=lambda stats: self.told.append(dict(stats)),
        )
        self.told: list[dict[str, Any]] = []
        self.played: list[tuple[float, int]] = []

    def player(self) -> Any:
        return self

    def play(self, env: float, wanted: Wanted) -> Played:
        self.played.append((env, wanted.episodes))
        return Played(tuple(PlayedEpisode(k, env, 1, "terminated") for k in range(wanted.episodes)))


def test_the_basic_usage_of_the_seed_evaluates_all_lessons_under_its_own_label() -> None:
    worker = EvaluatedWorker()

    # Register a custom evaluation hook
    custom_eval = EvaluationHook(frequency=50, n_examples=32, eval_type="custom_eval")
    worker.register_hook(custom_eval)

    # Add logging
    logging_hook = LoggingHook(frequency=100)
    worker.register_hook(logging_hook)
    worker.run(100)

    assert worker.played == [(1.0, 32), (0.0, 32)] * 2
    results = worker.results[50]
    assert results["EvaluationHook/custom_eval/addition/success_rate"] == 1.0
    assert results["EvaluationHook/custom_eval/success_rate"] == 0.5
    assert worker.results[51] == {}
    assert worker.told[0]["division"] == LessonScore(successes=0, episodes=32, mean_return=0.0)


def test_the_built_in_evaluation_hook_has_the_seeds_arguments() -> None:
    hook = EvaluationHook(
        frequency=100,  # How often to run
        n_examples=64,  # Number of evaluation examples
        eval_type="eval",  # Type of evaluation
        evaluate_all_lessons=True,  # Evaluate all or just current lesson
    )
    by_position = EvaluationHook(100, 64, "eval", False, 150)

    assert hook.should_run(HookContext(worker=object(), step=100))
    assert not hook.should_run(HookContext(worker=object(), step=150))
    assert [step for step in (100, 150, 200) if by_position.should_run(HookContext(worker=object(), step=step))] == [
        200
    ]


def test_the_defaults_of_a_worker_are_a_micro_and_a_full_evaluation() -> None:
    worker = EvaluatedWorker()
    for hook in create_default_evaluation_hooks(SimpleNamespace(micro_eval_frequency=10, eval_frequency=100)):
        worker.register_hook(hook)

    worker.run(100, lesson_id="division")

    assert worker.played == [(0.0, 4)] * 10 + [(1.0, 64), (0.0, 64)]
    assert len(worker.told) == 1  # by the full one alone


def test_the_migration_guides_hooks_run_beside_each_other() -> None:
    worker = EvaluatedWorker()

    # After: Add custom hooks without changing config
    worker.register_hook(EvaluationHook(frequency=5, n_examples=1))
    worker.register_hook(EvaluationHook(frequency=50, n_examples=2))
    worker.run(50)

    assert len(worker.played) == 2 * 10 + 2
    assert {name.partition("/")[0] for name in worker.results[50]} == {"EvaluationHook", "EvaluationHook_2"}


def test_the_seeds_composition_runs_an_evaluation_among_its_children() -> None:
    worker = EvaluatedWorker()
    composite = CompositeHook([EvaluationHook(frequency=100, n_examples=1), LoggingHook(frequency=50)])
    worker.register_hook(composite)

    worker.run(100)

    assert worker.results[100]["CompositeHook/EvaluationHook/eval/success_rate"] == 0.5
