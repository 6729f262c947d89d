"""The hooks that come with hookloop, and what is needed to write one."""

from hookloop.core import CompositeHook, Hook, HookContext, HookManager, PeriodicHook, TrainerHook, TrainerState
from hookloop.hooks.from_file import load_hooks
from hookloop.hooks.logging import LoggingHook
from hookloop.hooks.time_limit import TimeLimitHook

__all__ = [
    "CompositeHook",
    "Hook",
    "HookContext",
    "HookManager",
    "LoggingHook",
    "PeriodicHook",
    "TimeLimitHook",
    "TrainerHook",
    "TrainerState",
    "load_hooks",
]
