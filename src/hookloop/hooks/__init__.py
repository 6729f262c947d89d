"""The hooks that come with hookloop, and what is needed to write one."""

from hookloop.core import CompositeHook, Hook, HookContext, HookManager, PeriodicHook, TrainerHook, TrainerState
from hookloop.hooks.alert import AlertHook
from hookloop.hooks.best_weights import BestWeightsHook
from hookloop.hooks.checkpoint import CheckpointHook
from hookloop.hooks.checkpoint_folder import CheckpointFolderHook
from hookloop.hooks.confidence import ConfidenceHook
from hookloop.hooks.display import DisplayHook
from hookloop.hooks.drift import DriftHook
from hookloop.hooks.early_stopping import EarlyStoppingHook
from hookloop.hooks.ema import EmaHook
from hookloop.hooks.evaluation import EvaluationHook
from hookloop.hooks.evaluation_presets import create_default_evaluation_hooks
from hookloop.hooks.figures import FiguresHook
from hookloop.hooks.from_file import load_hooks
from hookloop.hooks.game_replays import GameReplayHook
from hookloop.hooks.game_snapshot import GameSnapshotHook
from hookloop.hooks.game_statistics import GameStatisticsHook
from hookloop.hooks.goal import GoalHook
from hookloop.hooks.gradient_stats import GradientStatsHook
from hookloop.hooks.health_monitor import HealthMonitorHook
from hookloop.hooks.heartbeat import HeartbeatHook
from hookloop.hooks.league import LeagueHook
from hookloop.hooks.logging import LoggingHook
from hookloop.hooks.lr_finder import LearningRateFinderHook, LearningRates, find_learning_rate
from hookloop.hooks.memory_advice import MemoryAdviceHook
from hookloop.hooks.metrics import MetricsHook
from hookloop.hooks.monitor import MonitorHook
from hookloop.hooks.nan_guard import NanGuardHook
from hookloop.hooks.progress import ProgressHook
from hookloop.hooks.serve_weights import ServeWeightsHook
from hookloop.hooks.stats import StatsHook
from hookloop.hooks.stopwatch import StopwatchHook
from hookloop.hooks.time_limit import TimeLimitHook
from hookloop.hooks.trackers import TrackerHook
from hookloop.hooks.watchdog import WatchdogHook

__all__ = [
    "AlertHook",
    "BestWeightsHook",
    "CheckpointFolderHook",
    "CheckpointHook",
    "CompositeHook",
    "ConfidenceHook",
    "DisplayHook",
    "DriftHook",
    "EarlyStoppingHook",
    "EmaHook",
    "EvaluationHook",
    "FiguresHook",
    "GameReplayHook",
    "GameSnapshotHook",
    "GameStatisticsHook",
    "GoalHook",
    "GradientStatsHook",
    "HealthMonitorHook",
    "HeartbeatHook",
    "Hook",
    "HookContext",
    "HookManager",
    "LeagueHook",
    "LearningRateFinderHook",
    "LearningRates",
    "LoggingHook",
    "MemoryAdviceHook",
    "MetricsHook",
    "MonitorHook",
    "NanGuardHook",
    "PeriodicHook",
    "ProgressHook",
    "ServeWeightsHook",
    "StatsHook",
    "StopwatchHook",
    "TimeLimitHook",
    "TrackerHook",
    "TrainerHook",
    "TrainerState",
    "WatchdogHook",
    "create_default_evaluation_hooks",
    "find_learning_rate",
    "load_hooks",
]
