"""The health monitor: what was learned stays, and what is being learned moves."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from hookloop.core import HookContext, HookManager
from hookloop.errors import RegistrationError
from hookloop.hooks import HealthMonitorHook


def lesson(success: float, state: str = "unlocked", evaluated: float | None = None) -> dict[str, Any]:
    return {"state": state, "success": success, "evaluated_success": evaluated, "episodes": 10}


def look(hook: HealthMonitorHook, **lessons: dict[str, Any]) -> dict[str, Any]:
    context = HookContext()
    context.state.curriculum = {"lessons": lessons}
    return hook.run(context) or {}


def kinds(hook: HealthMonitorHook) -> list[str]:
    return [issue.kind for issue in hook.issues]


@pytest.mark.parametrize(
    ("success", "expected"),
    [(0.86, []), (0.84, [("regression", False)]), (0.69, [("regression", True)])],
)
def test_a_graduated_lesson_that_is_being_forgotten_is_told_of(
    success: float, expected: list[tuple[str, bool]]
) -> None:
    hook = HealthMonitorHook()

    metrics = look(hook, walk=lesson(success, "graduated"))

    assert [(issue.kind, issue.is_critical) for issue in hook.issues] == expected
    assert metrics["regression"] == len(expected)


def test_what_evaluation_found_counts_more_than_training() -> None:
    hook = HealthMonitorHook()

    look(hook, walk=lesson(0.5, "graduated", evaluated=0.95))

    assert hook.issues == []


def test_a_lesson_that_does_not_improve_stagnates() -> None:
    hook = HealthMonitorHook(stagnation_looks=100)

    for _ in range(100):
        look(hook, walk=lesson(0.4))
    assert kinds(hook) == []
    look(hook, walk=lesson(0.4))

    assert kinds(hook) == ["stagnation"]


def test_a_lesson_that_is_mastered_or_improves_does_not_stagnate() -> None:
    hook = HealthMonitorHook(stagnation_looks=10)

    for number in range(40):
        look(hook, mastered=lesson(0.99), rising=lesson(number * 0.02))
        assert kinds(hook) == []


def test_a_success_that_swings_is_volatile() -> None:
    hook = HealthMonitorHook()

    for number in range(20):
        look(hook, walk=lesson(0.9 if number % 2 else 0.5), steady=lesson(0.8))

    assert [(issue.lesson, issue.kind) for issue in hook.issues] == [("walk", "volatility")]


def test_a_lesson_that_is_trained_for_too_long_is_told_of() -> None:
    hook = HealthMonitorHook(prolonged_looks=30, stagnation_looks=1000)

    for _ in range(30):
        look(hook, walk=lesson(0.9))

    assert kinds(hook) == ["prolonged"]


def test_the_same_issue_is_told_of_once_in_a_while_and_a_worse_one_at_once(caplog: pytest.LogCaptureFixture) -> None:
    hook = HealthMonitorHook(cooldown_looks=200)

    with caplog.at_level(logging.WARNING, "hookloop.hooks.health_monitor"):
        for _ in range(200):
            look(hook, walk=lesson(0.8, "graduated"))
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        look(hook, walk=lesson(0.6, "graduated"))
        look(hook, walk=lesson(0.8, "graduated"))

    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR", "WARNING"]
    assert caplog.records[0].getMessage() == "lesson walk: regression: graduated, but succeeds only 0.80"


def test_locked_lessons_and_runs_without_lessons_are_left_alone() -> None:
    hook = HealthMonitorHook()

    assert look(hook) == {}
    assert not any(look(hook, fly=lesson(0.0, "locked")).values())


def test_it_goes_on_from_what_it_remembered(caplog: pytest.LogCaptureFixture) -> None:
    whole, resumed = HealthMonitorHook(stagnation_looks=10), HealthMonitorHook(stagnation_looks=10)
    for _ in range(12):
        look(whole, walk=lesson(0.4), run=lesson(0.6, "graduated"))

    resumed.load_state_dict(json.loads(json.dumps(whole.state_dict())))
    caplog.clear()
    for hook in (whole, resumed):
        look(hook, walk=lesson(0.3), run=lesson(0.6, "graduated"))

    assert resumed.state_dict() == whole.state_dict()
    assert resumed.issues == whole.issues
    assert caplog.records == []


def test_it_looks_once_per_epoch_and_its_counts_are_metrics() -> None:
    hooks = HookManager()
    hooks.add(HealthMonitorHook(), name="health")
    context = HookContext()
    hooks.bind(context)
    context.state.curriculum = {"lessons": {"walk": lesson(0.8, "graduated")}}

    context.state.clocks.epochs = 1
    hooks.emit.step_end(context)
    hooks.emit.epoch_end(context)

    (row,) = context.drain_metrics()
    assert row["values"] == {
        "health/regression": 1, "health/stagnation": 0, "health/volatility": 0, "health/prolonged": 0,
        "health/critical": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "words"),
    [({"critical_success": 0.9}, "lies above warning_success"), ({"volatility_looks": 2}, "at least 5, got 2")],
)
def test_thresholds_that_mean_nothing_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(RegistrationError, match=words):
        HealthMonitorHook(**options)
