"""The public list: what ``hookloop`` offers, and nothing by accident."""

from __future__ import annotations

import hookloop

PUBLIC = [
    "Always", "At", "CheckpointHook", "CheckpointManager", "Clocks", "CompositeHook", "Cycle", "EvaluationHook",
    "Every", "Hook", "HookContext", "HookManager", "HookloopError", "LoggingHook", "Never", "Once", "PeriodicHook",
    "Schedule", "TimeLimitHook", "TrainerHook", "TrainerState", "TrainingLoop", "When", "Window", "load_hooks",
    "parse_schedule", "register_hook_type",
]  # fmt: skip


def test_the_public_names_are_these() -> None:
    assert sorted(hookloop.__all__) == sorted(PUBLIC)


def test_every_public_name_can_be_reached_and_is_listed() -> None:
    for name in PUBLIC:
        assert getattr(hookloop, name) is not None
        assert name in dir(hookloop)


def test_a_name_that_is_not_there_is_missed_as_python_does() -> None:
    assert not hasattr(hookloop, "Trainr")
