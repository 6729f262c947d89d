"""The hooks that come with hookloop, and what is needed to write one."""

from hookloop.core import CompositeHook, Hook, HookContext, HookManager, PeriodicHook, TrainerHook, TrainerState
from hookloop.hooks.checkpoint import CheckpointHook
from hookloop.hooks.from_file import load_hooks
from hookloop.hooks.goal import GoalHook
from hookloop.hooks.logging import LoggingHook
from hookloop.hooks.nan_guard import NanGuardHook
from hookloop.hooks.progress import ProgressHook
from hookloop.hooks.time_limit import TimeLimitHook

__all__ = [
    "CheckpointHook",
    "CompositeHook",
    "GoalHook",
    "Hook",
    "HookContext",
    "HookManager",
    "LoggingHook",
    "NanGuardHook",
    "PeriodicHook",
    "ProgressHook",
    "TimeLimitHook",
    "TrainerHook",
    "TrainerState",
    "load_hooks",
]
