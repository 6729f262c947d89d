"""hookloop: a training loop that only trains, and hooks for everything else.

The names below are imported when they are first used, so ``import hookloop`` is quick and brings no torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

_HOMES = {
    "Always": "hookloop.core",
    "At": "hookloop.core",
    "CheckpointHook": "hookloop.hooks",
    "CheckpointManager": "hookloop.checkpoints",
    "Clocks": "hookloop.core",
    "CompositeHook": "hookloop.core",
    "Cycle": "hookloop.core",
    "EvaluationHook": "hookloop.hooks",
    "Every": "hookloop.core",
    "Hook": "hookloop.core",
    "HookContext": "hookloop.core",
    "HookManager": "hookloop.core",
    "HookloopError": "hookloop.errors",
    "LoggingHook": "hookloop.hooks",
    "Never": "hookloop.core",
    "Once": "hookloop.core",
    "PeriodicHook": "hookloop.core",
    "Schedule": "hookloop.core",
    "TimeLimitHook": "hookloop.hooks",
    "TrainerHook": "hookloop.core",
    "TrainerState": "hookloop.core",
    "TrainingLoop": "hookloop.core",
    "When": "hookloop.core",
    "Window": "hookloop.core",
    "load_hooks": "hookloop.hooks",
    "parse_schedule": "hookloop.core",
    "register_hook_type": "hookloop.core.registry",
}

__all__ = [
    "Always",
    "At",
    "CheckpointHook",
    "CheckpointManager",
    "Clocks",
    "CompositeHook",
    "Cycle",
    "EvaluationHook",
    "Every",
    "Hook",
    "HookContext",
    "HookManager",
    "HookloopError",
    "LoggingHook",
    "Never",
    "Once",
    "PeriodicHook",
    "Schedule",
    "TimeLimitHook",
    "TrainerHook",
    "TrainerState",
    "TrainingLoop",
    "When",
    "Window",
    "load_hooks",
    "parse_schedule",
    "register_hook_type",
]

if TYPE_CHECKING:
    from hookloop.checkpoints import CheckpointManager
    from hookloop.core import (
        Always,
        At,
        Clocks,
        CompositeHook,
        Cycle,
        Every,
        Hook,
        HookContext,
        HookManager,
        Never,
        Once,
        PeriodicHook,
        Schedule,
        TrainerHook,
        TrainerState,
        TrainingLoop,
        When,
        Window,
        parse_schedule,
    )
    from hookloop.core.registry import register_hook_type
    from hookloop.errors import HookloopError
    from hookloop.hooks import CheckpointHook, EvaluationHook, LoggingHook, TimeLimitHook, load_hooks


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'hookloop' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
