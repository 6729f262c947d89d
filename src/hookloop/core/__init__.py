"""The core: events, clocks, schedules, hooks, dispatch and the loop. Standard library only."""

from hookloop.core.clocks import BUILT_IN_CLOCKS, Clocks
from hookloop.core.context import HookContext
from hookloop.core.costs import HookCost
from hookloop.core.events import BUILT_IN_EVENTS, Event
from hookloop.core.hook import CompositeHook, Hook, PeriodicHook, TrainerHook
from hookloop.core.instants import At, Every, Once
from hookloop.core.loop import LoopResult, TrainingLoop, Workload
from hookloop.core.manager import HookManager
from hookloop.core.ranks import Ranks, SingleProcess
from hookloop.core.rng import derive_seed, stream
from hookloop.core.schedule_text import as_schedule, parse_schedule
from hookloop.core.schedules import Always, Never, Schedule, When
from hookloop.core.spans import Cycle, Window
from hookloop.core.state import HookFailures, StopRequest, TrainerState
from hookloop.core.timeline import Timeline

__all__ = [
    "BUILT_IN_CLOCKS",
    "BUILT_IN_EVENTS",
    "Always",
    "At",
    "Clocks",
    "CompositeHook",
    "Cycle",
    "Event",
    "Every",
    "Hook",
    "HookContext",
    "HookCost",
    "HookFailures",
    "HookManager",
    "LoopResult",
    "Never",
    "Once",
    "PeriodicHook",
    "Ranks",
    "Schedule",
    "SingleProcess",
    "StopRequest",
    "Timeline",
    "TrainerHook",
    "TrainerState",
    "TrainingLoop",
    "When",
    "Window",
    "Workload",
    "as_schedule",
    "derive_seed",
    "parse_schedule",
    "stream",
]
